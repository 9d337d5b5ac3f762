// Targets of stripes and replicas of runs.
#include "kvstore/client/target_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace cairn::kv {
namespace {

std::vector<TargetState> Targets(uint64_t count) {
  std::vector<TargetState> targets;
  for (uint64_t i = 0; i < count; ++i) targets.push_back({{i + 1}, true, 1000, 0});
  return targets;
}

TEST(TargetChoice, PlacesAreDistinctAndLive) {
  Random random(1);
  TargetChooser chooser;
  std::vector<TargetState> targets = Targets(12);
  targets[4].live = false;
  for (int round = 0; round < 100; ++round) {
    const auto chosen = chooser.Choose(targets, 11, random);
    ASSERT_TRUE(chosen.has_value());
    const std::set<TargetId> distinct(chosen->begin(), chosen->end());
    EXPECT_EQ(distinct.size(), 11u);
    EXPECT_FALSE(distinct.contains(TargetId{5}));
  }
  EXPECT_FALSE(chooser.Choose(targets, 12, random).has_value());
}

TEST(TargetChoice, PrefersFreeSpaceAndShortQueues) {
  Random random(2);
  TargetChooser chooser;
  std::vector<TargetState> targets = Targets(10);
  targets[0].free_bytes = 1;
  targets[1].queue = 100;
  std::map<TargetId, int> picks;
  for (int round = 0; round < 3000; ++round) {
    const auto chosen = chooser.Choose(targets, 1, random);
    ++picks[(*chosen)[0]];
  }
  EXPECT_EQ(picks[TargetId{1}], 0);
  EXPECT_EQ(picks[TargetId{2}], 0);
  EXPECT_GT(picks[TargetId{3}], 200);  // Those that are alike share what comes.
}

// Narrow stripes of any width leave no target more than a shard ahead of another.
TEST(TargetChoice, TargetsFillInStep) {
  Random random(4);
  TargetChooser chooser;
  std::vector<TargetState> targets = Targets(12);
  for (TargetState& target : targets) target.free_bytes = 1'000'000;
  for (int round = 0; round < 1000; ++round) {
    const size_t count = 3 + random.Below(10);
    const auto chosen = chooser.Choose(targets, count, random);
    ASSERT_TRUE(chosen.has_value());
    for (const TargetId id : *chosen) targets[id.value - 1].free_bytes -= 10;
    const auto [low, high] = std::minmax_element(
        targets.begin(), targets.end(),
        [](const TargetState& a, const TargetState& b) { return a.free_bytes < b.free_bytes; });
    ASSERT_LE(high->free_bytes - low->free_bytes, 10u);
  }
}

// A full target frees a segment when it opens one: who is never chosen never has more room.
TEST(TargetChoice, WhoHasALittleLessRoomIsNotPassedOverForEver) {
  Random random(5);
  TargetChooser chooser;
  std::vector<TargetState> targets = Targets(4);
  targets[2].free_bytes -= 1;
  int picks = 0;
  for (int round = 0; round < 170; ++round) {
    const auto chosen = chooser.Choose(targets, 3, random);
    picks += static_cast<int>(std::count(chosen->begin(), chosen->end(), targets[2].id));
  }
  EXPECT_EQ(picks, 10);
}

TEST(TargetChoice, ReplacingATargetKeepsTheOtherReplicas) {
  std::vector<TargetId> before;
  for (uint64_t i = 1; i <= 12; ++i) before.push_back({i * 7919});
  std::vector<TargetId> after = before;
  after[3] = {424242};
  Random random(3);
  std::map<TargetId, int> load;
  for (int i = 0; i < 1200; ++i) {
    const RunId run{{random.Next(), 7}};
    const auto old_order = ReplicaOrder({}, run, before);
    const auto new_order = ReplicaOrder({}, run, after);
    for (size_t r = 0; r < 3; ++r) {
      ++load[old_order[r]];
      if (old_order[r] == before[3]) continue;
      EXPECT_NE(std::find(new_order.begin(), new_order.begin() + 4, old_order[r]),
                new_order.begin() + 4);
    }
  }
  for (const auto& [target, runs] : load) EXPECT_NEAR(runs, 300, 90) << target.value;
}

}  // namespace
}  // namespace cairn::kv
