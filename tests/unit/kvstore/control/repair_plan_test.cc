// Who vacates lost and draining targets, to where, and when they are forgotten.
#include "kvstore/control/repair_plan.h"

#include <gmock/gmock.h>

#include "tests/unit/kvstore/control/cluster_builder.h"

namespace cairn::kv {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

MapContent WithOneLost() {
  MapContent content = PlannedCluster({.nodes = 20});
  ++content.epoch;
  content.targets[9].state = MemberState::kLost;
  content.targets[9].since = content.epoch;
  PlanSets(content, {});
  PlanGroups(content, {});
  return content;
}

TEST(RepairPlan, HomesShareTheWorkByTheirGroups) {
  MapContent content = WithOneLost();
  content.targets[20].draining = true;
  const auto map = MapOf(content);
  uint64_t rate = 0;
  std::set<uint32_t> groups;
  for (const NodeEntry& node : map->nodes()) {
    const RepairDuty duty = DutyOf(*map, node.id, 10 * kMiB);
    EXPECT_THAT(duty.rebuild, ElementsAre(content.targets[9].id));
    EXPECT_THAT(duty.copy, ElementsAre(content.targets[20].id));
    for (const uint32_t group : duty.groups) EXPECT_TRUE(groups.insert(group).second);
    rate += duty.bytes_per_second;
  }
  EXPECT_EQ(groups.size(), map->groups().size());
  EXPECT_NEAR(static_cast<double>(rate), 79.0 * 10 * kMiB, kMiB);
}

TEST(RepairPlan, NothingToDoTakesNoRate) {
  const auto map = MapOf(PlannedCluster({}));
  const RepairDuty duty = DutyOf(*map, {3}, 10 * kMiB);
  EXPECT_THAT(duty.rebuild, IsEmpty());
  EXPECT_EQ(duty.bytes_per_second, 0u);
}

TEST(RepairPlan, AShardGoesToTheSuccessorInItsSet) {
  const MapContent before = PlannedCluster({.nodes = 20});
  const MapContent after = WithOneLost();
  const TargetId lost = after.targets[9].id;
  const auto map = MapOf(after);
  const Successors successors(*map);
  uint32_t checked = 0;
  for (size_t i = 0; i < before.sets.size(); ++i) {
    const auto& stripe = before.sets[i].targets;
    const auto place = std::find(stripe.begin(), stripe.end(), lost);
    if (place == stripe.end()) continue;
    ++checked;
    const auto index = static_cast<size_t>(place - stripe.begin());
    EXPECT_EQ(successors.Of(stripe, lost), after.sets[i].targets[index]);
  }
  EXPECT_EQ(checked, 8u);
}

TEST(RepairPlan, WithoutASetAnyTargetThatFitsWillDo) {
  MapContent content = WithOneLost();
  const TargetId lost = content.targets[9].id;
  content.sets.clear();
  const auto map = MapOf(content);
  const std::vector<TargetId> stripe{TargetIdOf(1, 0), lost, TargetIdOf(7, 1)};
  const TargetId successor = Successors(*map).Of(stripe, lost);
  ASSERT_NE(successor, kNoTarget);
  EXPECT_TRUE(map->FindTarget(successor)->writable());
  EXPECT_NE(map->FindTarget(successor)->node, NodeId{1});
  EXPECT_NE(map->FindTarget(successor)->node, NodeId{7});
}

TEST(RepairPlan, InAClusterWithoutRoomThereIsNoSuccessor) {
  MapContent content = PlannedCluster({.targets_per_node = 1});
  const std::vector<TargetId> stripe = content.sets[0].targets;
  SetState(content, {4}, MemberState::kLost);
  const auto map = MapOf(content);
  EXPECT_EQ(Successors(*map).Of(stripe, TargetIdOf(4, 0)), kNoTarget);
}

TEST(RepairPlan, ALostTargetIsForgottenOnceAllHomesHaveVacatedIt) {
  MapContent content = WithOneLost();
  const TargetId lost = content.targets[9].id;
  const size_t count = content.targets.size();
  std::vector<VacatedReport> reports;
  for (const NodeEntry& node : content.nodes) reports.push_back({node.id, lost, content.epoch});
  MapContent one_missing = content;
  ForgetVacated(one_missing, std::span(reports).first(reports.size() - 1));
  EXPECT_EQ(one_missing.targets.size(), count);
  MapContent too_early = content;
  reports.back().epoch = content.epoch - 1;
  ForgetVacated(too_early, reports);
  EXPECT_EQ(too_early.targets.size(), count);
  reports.back().epoch = content.epoch;
  ForgetVacated(content, reports);
  EXPECT_EQ(content.targets.size(), count - 1);
  MapOf(content);
}

TEST(RepairPlan, AHomeThatGotAGroupSinceHasToLookAgain) {
  MapContent content = WithOneLost();
  const TargetId lost = content.targets[9].id;
  std::vector<VacatedReport> reports;
  for (const NodeEntry& node : content.nodes) reports.push_back({node.id, lost, content.epoch});
  SetState(content, {7}, MemberState::kSuspect);
  PlanPlaces(content);
  const size_t count = content.targets.size();
  ForgetVacated(content, reports);
  EXPECT_EQ(content.targets.size(), count);
}

TEST(RepairPlan, ADrainingTargetIsNeverForgottenWhileItIsThere) {
  MapContent content = PlannedCluster({.nodes = 20});
  content.targets[9].draining = true;
  PlanPlaces(content);
  std::vector<VacatedReport> reports;
  for (const NodeEntry& node : content.nodes) {
    reports.push_back({node.id, content.targets[9].id, content.epoch});
  }
  const size_t count = content.targets.size();
  ForgetVacated(content, reports);
  EXPECT_EQ(content.targets.size(), count);
}

TEST(RepairPlan, ADrainedTargetMayBeTakenAwayOnceAllHomesHaveLookedAndNoGroupIsThere) {
  MapContent content = PlannedCluster({.nodes = 20});
  const TargetId leaving = content.targets[9].id;
  const auto reports_of = [&] {
    std::vector<VacatedReport> reports;
    for (const NodeEntry& node : content.nodes) {
      reports.push_back({node.id, leaving, content.epoch});
    }
    return reports;
  };
  EXPECT_THAT(VacatedTargets(content, reports_of()), IsEmpty());  // Nobody asked for it.
  ++content.epoch;
  content.targets[9].draining = true;
  content.targets[9].since = content.epoch;
  EXPECT_THAT(VacatedTargets(content, reports_of()), IsEmpty());  // It still has index groups.
  ++content.epoch;
  PlanPlaces(content);
  std::vector<VacatedReport> reports = reports_of();
  EXPECT_THAT(VacatedTargets(content, reports), IsEmpty());  // Others are getting its places.
  for (Group& group : content.groups) group.filling = 0;
  EXPECT_THAT(VacatedTargets(content, reports), ElementsAre(leaving));
  reports.back().epoch = content.targets[9].since - 1;
  EXPECT_THAT(VacatedTargets(content, reports), IsEmpty());
}

}  // namespace
}  // namespace cairn::kv
