// Which segments are freed, and what becomes of their shards.
#include "kvstore/reclaim/reclaim_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn::kv {
namespace {

using Fate = ShardView::Fate;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint32_t kNow = 1000;

// A shard of 100 bytes that was used `age` seconds ago.
ShardView Live(uint32_t age, uint32_t position = 0) {
  return {.fate = Fate::kLive,
          .hit = true,
          .last_access = kNow - age,
          .position = position,
          .bytes = 100};
}
ShardView Unused(uint32_t age) {
  ShardView shard = Live(age);
  shard.hit = false;
  return shard;
}
ShardView With(Fate fate) { return {.fate = fate, .bytes = 100}; }
SegmentView Segment(std::vector<ShardView> shards) {
  return {.used_bytes = 100 * shards.size(), .shards = std::move(shards)};
}
ReclaimNeed Need(uint64_t wanted, uint64_t move_max = 1'000'000) {
  return {.segments_wanted = wanted, .move_bytes_max = move_max, .now_seconds = kNow};
}

TEST(ReclaimPlan, WhatHoldsNothingLiveGoesFirstAndCostsNothing) {
  const std::vector<SegmentView> sealed{Segment({Live(500)}),
                                        Segment({With(Fate::kExpired), With(Fate::kDead)}),
                                        {.used_bytes = 100}};
  const auto plan = ReclaimPlanner().Plan(sealed, Need(2));
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[0].segment, 1u);
  EXPECT_THAT(plan[0].expired, ElementsAre(0u));
  EXPECT_THAT(plan[0].dead, ElementsAre(1u));
  EXPECT_THAT(plan[0].evict, IsEmpty());
  EXPECT_EQ(plan[1].segment, 2u);
}

TEST(ReclaimPlan, TheLeastRecentlyUsedIsEvicted) {
  const std::vector<SegmentView> sealed{
      Segment({Live(50), Live(40), Live(45), Live(44), Live(43)}),
      Segment({Live(900), Live(800)}),
      Segment({Live(30), Live(20), Live(25), Live(24), Live(23)})};
  const auto plan = ReclaimPlanner().Plan(sealed, Need(1));
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan[0].segment, 1u);
  EXPECT_THAT(plan[0].evict, ElementsAre(1u, 0u));
  EXPECT_THAT(plan[0].move, IsEmpty());
}

// Ten shards a segment: 8 of 10 bytes are hot, that is all that is younger than the 4 oldest.
TEST(ReclaimPlan, WhatIsHotInAColdSegmentIsMovedWithinTheBudget) {
  std::vector<ShardView> cold, hot;
  for (uint32_t i = 0; i < 10; ++i) {
    cold.push_back(i < 4 ? Live(900 + i) : Live(10));
    hot.push_back(Live(100));
  }
  const std::vector<SegmentView> sealed{Segment(cold), Segment(hot)};
  auto plan = ReclaimPlanner().Plan(sealed, Need(1));
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan[0].segment, 0u);
  EXPECT_THAT(plan[0].evict, ElementsAre(0u, 1u, 2u, 3u));
  EXPECT_EQ(plan[0].move.size(), 6u);
  plan = ReclaimPlanner().Plan(sealed, Need(1, 250));
  EXPECT_EQ(plan[0].move.size(), 2u);
  EXPECT_EQ(plan[0].evict.size(), 8u);
}

TEST(ReclaimPlan, AtEqualAgeSuffixesGoBeforePrefixes) {
  const std::vector<SegmentView> sealed{
      Segment({Live(100, 0), Live(100, 64), Live(100, 128), Live(100, 192)}),
      Segment({Live(100, 256), Live(100, 320)})};
  ReclaimPlanner planner;
  auto plan = planner.Plan(sealed, Need(1));
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan[0].segment, 1u);
  // And within a segment that has to give up something.
  const std::vector<SegmentView> one{Segment({Live(100, 64), Live(100, 0), Live(100, 128)})};
  plan = ReclaimPlanner().Plan(one, Need(1, 100));
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_THAT(plan[0].move, ElementsAre(1u));
  EXPECT_THAT(plan[0].evict, ElementsAre(0u, 2u));
}

TEST(ReclaimPlan, WhatWasNeverUsedAgesFaster) {
  EXPECT_GT(ColdnessOf(Unused(100), kNow, 1.5), ColdnessOf(Live(149), kNow, 1.5));
  EXPECT_LT(ColdnessOf(Unused(100), kNow, 1.5), ColdnessOf(Live(151), kNow, 1.5));
  // A last access in the future (the clock was set back) is as young as can be.
  EXPECT_EQ(ColdnessOf({.last_access = kNow + 7}, kNow, 1.5).age, 0u);
}

// What is unused is waste where most of the store is, and merely young where next to nothing is.
TEST(ReclaimPlan, HowMuchFasterTheUnusedAgeFollowsTheirShare) {
  ReclaimPlanner planner;
  (void)planner.Plan(std::vector<SegmentView>{Segment({Live(10), Live(20)})}, Need(1));
  EXPECT_DOUBLE_EQ(planner.unused_aging(), 1);
  planner = ReclaimPlanner();
  (void)planner.Plan(std::vector<SegmentView>{Segment({Unused(10), Unused(20)})}, Need(1));
  EXPECT_DOUBLE_EQ(planner.unused_aging(), 2.5);
  // A fifth is unused, and ages 1.3 times as fast: it is younger, and goes first all the same.
  const std::vector<SegmentView> mixed{Segment(std::vector<ShardView>(8, Live(150))),
                                       Segment({Unused(120), Unused(120)})};
  planner = ReclaimPlanner();
  const auto plan = planner.Plan(mixed, Need(1));
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan[0].segment, 1u);
}

TEST(ReclaimPlan, ASegmentWithAShardBeingPutWaits) {
  const std::vector<SegmentView> sealed{Segment({Live(900), With(Fate::kPinned)})};
  EXPECT_THAT(ReclaimPlanner().Plan(sealed, Need(1)), IsEmpty());
}

TEST(ReclaimPlan, WhatIsHeldIsMovedWhateverItCosts) {
  const std::vector<SegmentView> sealed{
      Segment({With(Fate::kHeld), Live(900), Live(900), Live(900)})};
  const auto plan = ReclaimPlanner().Plan(sealed, Need(1, 0));
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_THAT(plan[0].move, ElementsAre(0u));
  EXPECT_EQ(plan[0].evict.size(), 3u);
  // But not where that would free next to nothing.
  const std::vector<SegmentView> full{
      Segment({With(Fate::kHeld), With(Fate::kHeld), With(Fate::kHeld), With(Fate::kHeld)})};
  EXPECT_THAT(ReclaimPlanner().Plan(full, Need(1)), IsEmpty());
}

// Where segments are half hot whatever one does, the cutoff sinks until a fifth of what is freed is
// rewritten; where they are cold through and through, it rises.
TEST(ReclaimPlan, TheCutoffFollowsWhatTheSegmentsHold) {
  std::vector<SegmentView> mixed;
  for (int s = 0; s < 20; ++s) {
    std::vector<ShardView> shards;
    for (uint32_t i = 0; i < 50; ++i) shards.push_back(Live(10 * i));
    mixed.push_back(Segment(shards));
  }
  ReclaimPlanner planner;
  for (int i = 0; i < 200; ++i) (void)planner.Plan(mixed, Need(1));
  EXPECT_LT(planner.hot_share(), 0.4);
  std::vector<SegmentView> apart;
  for (uint32_t s = 0; s < 20; ++s) apart.push_back(Segment(std::vector<ShardView>(50, Live(s))));
  for (int i = 0; i < 200; ++i) (void)planner.Plan(apart, Need(1));
  EXPECT_GT(planner.hot_share(), 0.7);
}

TEST(ReclaimPlan, BudgetAndWatermark) {
  EXPECT_EQ(MoveBudget(1000, 0, 64, 30), 300u);
  EXPECT_EQ(MoveBudget(1000, 290, 64, 30), 10u);
  EXPECT_EQ(MoveBudget(1000, 900, 64, 30), 0u);
  EXPECT_EQ(MoveBudget(0, 0, 64, 30), 64u);  // Just started.
  EXPECT_EQ(SegmentsWanted(80, 3, 1), 0u);
  EXPECT_EQ(SegmentsWanted(80, 2, 1), 1u);
  EXPECT_EQ(SegmentsWanted(4096, 40, 1), 0u);
  EXPECT_EQ(SegmentsWanted(4096, 38, 1), 2u + 4u);
}

}  // namespace
}  // namespace cairn::kv
