// Which segments are freed, and what becomes of their shards.
#include "kvstore/node/reclaim_plan.h"

#include <gtest/gtest.h>

namespace cairn::kv {
namespace {

using Fate = ShardView::Fate;

StripeId Stripe(uint64_t n) { return StripeId{{0, n}}; }
ShardView Live(uint64_t n, uint32_t last_access, uint32_t position = 0) {
  return {Stripe(n), Fate::kLive, last_access, position};
}
SegmentView Segment(uint32_t id, std::vector<ShardView> shards) {
  return {{id}, 1000, 100 * shards.size(), std::move(shards)};
}

TEST(ReclaimPlan, DeadAndExpiredSegmentsGoFirstAndCostNothing) {
  const std::vector<SegmentView> sealed{
      Segment(1, {Live(1, 5)}),
      Segment(2, {{Stripe(2), Fate::kExpired, 90, 0}, {Stripe(3), Fate::kDead, 0, 0}}),
      Segment(3, {})};
  const auto plan = PlanReclaim(sealed, {.bytes_wanted = 2000, .move_bytes_max = 1000});
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[0].segment.value, 2u);
  EXPECT_EQ(plan[0].expired, (std::vector<StripeId>{Stripe(2)}));
  EXPECT_EQ(plan[0].dead, (std::vector<StripeId>{Stripe(3)}));
  EXPECT_TRUE(plan[0].evict.empty());
  EXPECT_EQ(plan[1].segment.value, 3u);
}

TEST(ReclaimPlan, TheLeastRecentlyUsedSegmentIsEvicted) {
  const std::vector<SegmentView> sealed{Segment(1, {Live(1, 50), Live(2, 60)}),
                                        Segment(2, {Live(3, 10), Live(4, 20)}),
                                        Segment(3, {Live(5, 70), Live(6, 80)})};
  const auto plan = PlanReclaim(sealed, {.bytes_wanted = 200, .move_bytes_max = 0});
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan[0].segment.value, 2u);
  EXPECT_EQ(plan[0].evict, (std::vector<StripeId>{Stripe(3), Stripe(4)}));
}

TEST(ReclaimPlan, RecentShardsOfAColdSegmentAreMovedWithinTheBudget) {
  const std::vector<SegmentView> sealed{
      Segment(1, {Live(1, 10), Live(2, 11), Live(3, 12), Live(4, 99)}),
      Segment(2, {Live(5, 50), Live(6, 51), Live(7, 52), Live(8, 53)})};
  auto plan = PlanReclaim(sealed, {.bytes_wanted = 300, .move_bytes_max = 100});
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan[0].segment.value, 1u);
  EXPECT_EQ(plan[0].move, (std::vector<StripeId>{Stripe(4)}));
  plan = PlanReclaim(sealed, {.bytes_wanted = 300, .move_bytes_max = 99});
  EXPECT_TRUE(plan[0].move.empty());
  EXPECT_EQ(plan[0].evict.size(), 4u);
}

TEST(ReclaimPlan, AtEqualAgeSuffixesGoBeforePrefixes) {
  const std::vector<SegmentView> sealed{Segment(1, {Live(1, 10, 0), Live(2, 10, 64)}),
                                        Segment(2, {Live(3, 10, 128), Live(4, 10, 192)})};
  const auto plan = PlanReclaim(sealed, {.bytes_wanted = 200, .move_bytes_max = 0});
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan[0].segment.value, 2u);
}

TEST(ReclaimPlan, ASegmentWithAShardBeingPutWaits) {
  const std::vector<SegmentView> sealed{
      Segment(1, {Live(1, 10), {Stripe(2), Fate::kPinned, 0, 0}})};
  EXPECT_TRUE(PlanReclaim(sealed, {.bytes_wanted = 1000, .move_bytes_max = 0}).empty());
}

}  // namespace
}  // namespace cairn::kv
