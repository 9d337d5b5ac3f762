// Whom most find slow for long enough loses its part of the index; a few, and for a while.
#include "kvstore/control/slow_targets.h"

#include <gmock/gmock.h>

#include "tests/unit/kvstore/control/cluster_builder.h"

namespace cairn::kv {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint32_t kAll = 1000;
constexpr SlowTargetOptions kOptions{.after = Seconds(15), .hold = Seconds(600)};

class SlowTargetsTest : public ::testing::Test {
 protected:
  // By these nodes, of these targets.
  static std::vector<SlowReport> Say(std::vector<uint32_t> nodes, std::vector<TargetId> slow) {
    std::vector<SlowReport> reports;
    for (const uint32_t node : nodes) {
      reports.push_back({.by = {node}, .asked = kAll, .slow = slow});
    }
    return reports;
  }

  void Step(Nanos later, const std::vector<SlowReport>& reports) {
    now_ = now_ + later;
    slow_.Step(now_, reports, content_);
  }

  const MapContent content_ = ContentOf({.nodes = 12, .targets_per_node = 1});
  const TargetId one_ = TargetIdOf(12, 0);
  Instant now_{Seconds(1000).value};
  SlowTargets slow_{kOptions};
};

TEST_F(SlowTargetsTest, WhoIsSlowWithoutABreakIsNamed) {
  Step(Seconds(1), {});
  const auto reports = Say({1, 2, 3}, {one_});
  Step(Seconds(1), reports);
  Step(Seconds(14), reports);
  EXPECT_THAT(slow_.named(), IsEmpty());
  Step(Seconds(0), Say({1, 2, 3}, {}));
  Step(Seconds(1), reports);
  Step(Seconds(14), reports);
  EXPECT_THAT(slow_.named(), IsEmpty());
  Step(Seconds(1), reports);
  EXPECT_THAT(slow_.named(), ElementsAre(one_));
}

TEST_F(SlowTargetsTest, HalfIsNotEnoughAndItsOwnNodeHasNoSay) {
  Step(Seconds(1), {});
  auto half = Say({1, 2}, {one_});
  for (const SlowReport& other : Say({3, 4, 12}, {})) half.push_back(other);
  Step(Seconds(1), half);
  Step(Seconds(60), half);
  EXPECT_THAT(slow_.named(), IsEmpty());
  auto own = Say({1, 12}, {one_});
  own.push_back({.by = {2}, .asked = kAll});
  Step(Seconds(1), own);
  Step(Seconds(60), own);
  EXPECT_THAT(slow_.named(), IsEmpty());
  auto most = Say({1, 2, 3}, {one_});
  for (const SlowReport& other : Say({4, 5, 12}, {})) most.push_back(other);
  Step(Seconds(1), most);
  Step(Seconds(60), most);
  EXPECT_THAT(slow_.named(), ElementsAre(one_));
}

TEST_F(SlowTargetsTest, ItStaysNamedForAWhileAndThenIsNot) {
  Step(Seconds(1), {});
  Step(Seconds(1), Say({1, 2}, {one_}));
  Step(Seconds(15), Say({1, 2}, {one_}));
  Step(Seconds(599), {});
  EXPECT_THAT(slow_.named(), ElementsAre(one_));
  Step(Seconds(1), {});
  EXPECT_THAT(slow_.named(), IsEmpty());
  Step(Seconds(1), Say({1, 2}, {one_}));
  EXPECT_THAT(slow_.named(), IsEmpty());
}

TEST_F(SlowTargetsTest, ANewCoordinatorKeepsWhatTheOneBeforeHadNamed) {
  const std::vector<TargetId> named{one_, TargetId{77}};  // The other has left the map since.
  slow_.Adopt(now_, named);
  Step(Seconds(599), {});
  EXPECT_THAT(slow_.named(), ElementsAre(one_));
  Step(Seconds(1), {});
  EXPECT_THAT(slow_.named(), IsEmpty());
}

// In a large cluster a node asks only a few others.
TEST_F(SlowTargetsTest, WhoHasAskedFewSaysLittleOfTheOthers) {
  const MapContent content = ContentOf({.nodes = 100, .targets_per_node = 1});
  const TargetId slow = TargetIdOf(100, 0);
  std::vector<SlowReport> reports;
  for (uint32_t node = 1; node <= 99; ++node) reports.push_back({.by = {node}, .asked = 10});
  const auto name = [&](uint32_t votes) {
    SlowTargets targets(kOptions);
    for (uint32_t i = 0; i < 99; ++i) {
      reports[i].slow = i < votes ? std::vector<TargetId>{slow} : std::vector<TargetId>();
    }
    targets.Step(now_, reports, content);
    targets.Step(now_ + Seconds(15), reports, content);
    return targets.named();
  };
  EXPECT_THAT(name(4), IsEmpty());  // About ten nodes have asked it.
  EXPECT_THAT(name(5), ElementsAre(slow));
}

TEST_F(SlowTargetsTest, OneOfManyIsNotEnoughHoweverFewAreAsked) {
  auto reports = Say({1}, {one_});
  for (SlowReport& other : Say({2, 3}, {})) reports.push_back(std::move(other));
  for (SlowReport& report : reports) report.asked = 1;
  Step(Seconds(1), reports);
  Step(Seconds(60), reports);
  EXPECT_THAT(slow_.named(), IsEmpty());
}

TEST_F(SlowTargetsTest, OfManyOnlyTheFirstFewAreNamed) {
  Step(Seconds(1), Say({1, 2}, {one_}));
  Step(Seconds(15), Say({1, 2}, {one_}));
  std::vector<TargetId> many;
  for (uint32_t node = 5; node <= 12; ++node) many.push_back(TargetIdOf(node, 0));
  Step(Seconds(1), Say({1, 2}, many));
  Step(Seconds(60), Say({1, 2}, many));
  EXPECT_THAT(slow_.named(), ElementsAre(TargetIdOf(5, 0), one_));
}

TEST_F(SlowTargetsTest, ANodeIsNamedWithAllItsSlowTargets) {
  const MapContent content = ContentOf({.nodes = 3, .targets_per_node = 4});
  std::vector<TargetId> all;
  for (uint32_t node = 2; node <= 3; ++node) {
    for (uint32_t i = 0; i < 4; ++i) all.push_back(TargetIdOf(node, i));
  }
  slow_.Step(now_, Say({1}, all), content);
  slow_.Step(now_ + Seconds(15), Say({1}, all), content);
  EXPECT_EQ(slow_.named(), std::set<TargetId>(all.begin(), all.begin() + 4));
}

TEST_F(SlowTargetsTest, WhatWasReportedBeforeAStallIsFoundAnew) {
  Step(Seconds(1), {});
  Step(Seconds(1), Say({1, 2}, {one_}));
  slow_.NoteStall();
  Step(Seconds(20), Say({1, 2}, {one_}));
  EXPECT_THAT(slow_.named(), IsEmpty());
  Step(Seconds(15), Say({1, 2}, {one_}));
  EXPECT_THAT(slow_.named(), ElementsAre(one_));
}

TEST_F(SlowTargetsTest, WhoLeftTheMapIsForgotten) {
  Step(Seconds(1), Say({1, 2}, {one_, TargetId{77}}));
  Step(Seconds(15), Say({1, 2}, {one_, TargetId{77}}));
  EXPECT_THAT(slow_.named(), ElementsAre(one_));
  MapContent smaller = content_;
  smaller.targets.pop_back();
  slow_.Step(now_, {}, smaller);
  EXPECT_THAT(slow_.named(), IsEmpty());
}

}  // namespace
}  // namespace cairn::kv
