// Stripe sets and index groups: who gets which place, and how little moves.
#include <bit>

#include <gmock/gmock.h>

#include "tests/unit/kvstore/control/cluster_builder.h"

namespace cairn::kv {
namespace {

uint32_t RacksOf(const MapContent& content, const auto& targets) {
  std::set<std::string> racks;
  const auto map = MapOf(content);
  for (const TargetId id : targets) {
    racks.insert(map->FindNode(map->FindTarget(id)->node)->rack);
  }
  return static_cast<uint32_t>(racks.size());
}

// Puts per byte of capacity that each target sees when sets are drawn by weight.
std::pair<double, double> LoadRange(const MapContent& content) {
  std::map<TargetId, double> load;
  for (const StripeSet& set : content.sets) {
    for (const TargetId id : set.targets) load[id] += set.weight;
  }
  double sum = 0, capacity = 0, low = 1e300, high = 0;
  for (const TargetEntry& target : content.targets) {
    sum += load[target.id];
    capacity += static_cast<double>(target.capacity);
  }
  for (const TargetEntry& target : content.targets) {
    const double relative = load[target.id] / static_cast<double>(target.capacity) * capacity / sum;
    low = std::min(low, relative);
    high = std::max(high, relative);
  }
  return {low, high};
}

TEST(StripeSets, EveryTargetIsInEightSetsOfDistinctNodes) {
  const MapContent content = PlannedCluster({});
  MapOf(content);
  EXPECT_EQ(content.sets.size(), 32u);
  for (const StripeSet& set : content.sets) EXPECT_EQ(set.targets.size(), 12u);
  EXPECT_EQ(MinMax(Memberships(content)), std::pair(8u, 8u));
}

TEST(StripeSets, TwelveTargetsAreOneSet) {
  const MapContent content = PlannedCluster({.targets_per_node = 1});
  ASSERT_EQ(content.sets.size(), 1u);
  EXPECT_EQ(content.sets[0].targets.size(), 12u);
}

TEST(StripeSets, FewNodesMakeNarrowSetsAndTwoMakeNone) {
  EXPECT_EQ(PlannedCluster({.nodes = 5}).sets.front().targets.size(), 5u);
  EXPECT_TRUE(PlannedCluster({.nodes = 2}).sets.empty());
  const ClusterShape embedded{.domain = FailureDomain::kTarget};
  const MapContent one = PlannedCluster({.nodes = 1, .targets_per_node = 12, .shape = embedded});
  ASSERT_EQ(one.sets.size(), 1u);
  EXPECT_EQ(one.sets[0].targets.size(), 12u);
}

TEST(StripeSets, NarrowSetsMakeWayOnceThereAreEnoughNodes) {
  const ClusterOptions options{.nodes = 6};
  MapContent content = PlannedCluster(options);
  for (uint32_t id = 7; id <= 12; ++id) AddNode(content, id, options);
  PlanPlaces(content);
  for (const StripeSet& set : content.sets) EXPECT_EQ(set.targets.size(), 12u);
  EXPECT_EQ(MinMax(Memberships(content)).first, 8u);
}

TEST(StripeSets, RacksAreDistinctWhereThereAreEnoughAndEvenWhereNot) {
  const MapContent many = PlannedCluster({.nodes = 48, .racks = 16});
  for (const StripeSet& set : many.sets) EXPECT_EQ(RacksOf(many, set.targets), 12u);
  for (const Group& group : many.groups) EXPECT_EQ(RacksOf(many, group.targets), 3u);
  const MapContent few = PlannedCluster({.nodes = 24, .racks = 6});
  for (const StripeSet& set : few.sets) EXPECT_EQ(RacksOf(few, set.targets), 6u);
}

TEST(StripeSets, ALostTargetsPlacesGoToOthersAndNothingElseMoves) {
  const MapContent before = PlannedCluster({.nodes = 20});
  MapContent after = before;
  const TargetId lost = after.targets[9].id;
  after.targets[9].state = MemberState::kLost;
  PlanPlaces(after);
  MapOf(after);
  ASSERT_EQ(after.sets.size(), before.sets.size());
  for (size_t i = 0; i < before.sets.size(); ++i) {
    for (size_t place = 0; place < 12; ++place) {
      const TargetId was = before.sets[i].targets[place];
      const TargetId is = after.sets[i].targets[place];
      EXPECT_NE(is, lost);
      if (was != lost) {
        EXPECT_EQ(was, is);
      }
    }
  }
  EXPECT_EQ(PlacesMoved(before, after), PlacesInGroups(before)[lost]);
}

TEST(StripeSets, WithoutASuccessorTheLostTargetKeepsItsPlace) {
  const MapContent before = PlannedCluster({.targets_per_node = 1});
  MapContent after = before;
  SetState(after, {4}, MemberState::kLost);
  PlanPlaces(after);
  EXPECT_EQ(after.sets[0].targets, before.sets[0].targets);
  // Once it is forgotten the place goes, and a new node gets it.
  std::erase_if(after.targets, [](const TargetEntry& target) { return target.node == NodeId{4}; });
  std::erase_if(after.nodes, [](const NodeEntry& node) { return node.id == NodeId{4}; });
  PlanPlaces(after);
  MapOf(after);
  EXPECT_EQ(after.sets[0].targets.size(), 11u);
  AddNode(after, 13, {.targets_per_node = 1});
  PlanPlaces(after);
  EXPECT_EQ(after.sets[0].targets.size(), 12u);
}

TEST(StripeSets, GrowthMovesNothing) {
  const ClusterOptions options{.nodes = 24};
  const MapContent before = PlannedCluster(options);
  MapContent after = before;
  AddNode(after, 25, options);
  AddNode(after, 26, options);
  PlanPlaces(after);
  for (const StripeSet& set : after.sets) {
    if (set.id < before.sets.size()) {
      EXPECT_EQ(set.targets, before.sets[set.id].targets);
    }
  }
  EXPECT_GT(after.sets.size(), before.sets.size());
  EXPECT_GE(MinMax(Memberships(after)).first, 8u);
}

TEST(StripeSets, AfterMuchGrowthOldSetsAreRetired) {
  ClusterOptions options{.nodes = 13, .targets_per_node = 2};
  MapContent content = PlannedCluster(options);
  for (uint32_t id = 14; id <= 80; ++id) {
    AddNode(content, id, options);
    PlanPlaces(content);
    const auto [low, high] = MinMax(Memberships(content));
    EXPECT_GE(low, 8u);
    EXPECT_LE(high, 24u) << id << " nodes";
  }
  MapOf(content);
}

TEST(StripeSets, DrainingGivesThePlacesAway) {
  MapContent content = PlannedCluster({.nodes = 20});
  content.targets[3].draining = true;
  const uint32_t places = PlacesInGroups(content)[content.targets[3].id];
  PlanPlaces(content);
  EXPECT_EQ(Memberships(content)[content.targets[3].id], 0u);
  EXPECT_GT(places, 0u);
  EXPECT_EQ(PlacesInGroups(content)[content.targets[3].id], 0u);
}

TEST(StripeSets, PutsFollowCapacity) {
  const auto [low, high] = LoadRange(PlannedCluster({.nodes = 48}));
  EXPECT_GT(low, 0.9);
  EXPECT_LT(high, 1.1);
  MapContent mixed = ContentOf({.nodes = 48});
  for (size_t i = 0; i < mixed.targets.size(); i += 3) mixed.targets[i].capacity *= 4;
  PlanPlaces(mixed);
  const auto [mixed_low, mixed_high] = LoadRange(mixed);
  EXPECT_GT(mixed_low, 0.75);
  EXPECT_LT(mixed_high, 1.25);
}

TEST(StripeSets, ANewTargetIsWrittenToByItsWeight) {
  const ClusterOptions options{.nodes = 24};
  MapContent content = PlannedCluster(options);
  AddNode(content, 25, options);
  for (size_t i = content.targets.size() - 4; i < content.targets.size(); ++i) {
    content.targets[i].weight_percent = 10;
  }
  PlanPlaces(content);
  uint64_t sum = 0, of_new = 0;
  for (const StripeSet& set : content.sets) {
    for (const TargetId id : set.targets) {
      sum += set.weight;
      if (id == TargetIdOf(25, 0)) of_new += set.weight;
    }
  }
  EXPECT_NEAR(static_cast<double>(of_new) * 100 / static_cast<double>(sum), 0.1, 0.05);
}

TEST(IndexGroups, PlacesAndHomesAreEven) {
  const MapContent content = PlannedCluster({.nodes = 25});
  const auto [low, high] = MinMax(PlacesInGroups(content));  // 12,288 places, 100 targets.
  EXPECT_GE(low, 114u);
  EXPECT_LE(high, 132u);
  const auto [homes_low, homes_high] = MinMax(HomesOf(content));
  EXPECT_GE(homes_low, 30u);
  EXPECT_LE(homes_high, 52u);
  for (const Group& group : content.groups) EXPECT_EQ(group.filling, 0);
}

TEST(IndexGroups, ASuspectHomeGivesWayAndNothingMoves) {
  const MapContent before = PlannedCluster({.nodes = 20});
  MapContent after = before;
  SetState(after, {5}, MemberState::kSuspect);
  PlanPlaces(after);
  EXPECT_EQ(PlacesMoved(before, after), 0u);
  const auto map = MapOf(after);
  for (size_t i = 0; i < after.groups.size(); ++i) {
    const Group& group = after.groups[i];
    EXPECT_NE(map->HomeOf(group), NodeId{5});
    const bool changed = group.targets[0] != before.groups[i].targets[0];
    EXPECT_EQ(group.since, changed ? after.epoch : before.groups[i].since);
  }
  // It gets homes again when it is back.
  SetState(after, {5}, MemberState::kUp);
  PlanPlaces(after);
  EXPECT_GE(HomesOf(after)[TargetIdOf(5, 0)], 35u);
}

TEST(IndexGroups, ASlowTargetLeadsNoneAtOnceAndHoldsNoneSoon) {
  const MapContent before = PlannedCluster({.nodes = 20});
  MapContent content = before;
  const TargetId slow = TargetIdOf(5, 0);
  // One replica of some group of it is being filled: that group waits.
  const auto waiting = std::find_if(content.groups.begin(), content.groups.end(), [&](auto& group) {
    return group.targets[1] == slow;
  });
  waiting->filling = 4;
  ++content.epoch;
  PlanGroups(content, {}, {slow});
  EXPECT_EQ(HomesOf(content)[slow], 0u);
  EXPECT_EQ(PlacesInGroups(content)[slow], 1u);
  for (Group& group : content.groups) {
    EXPECT_LE(std::popcount(group.filling), 1);
    group.filling = 0;
  }
  PlanGroups(content, {}, {slow});
  EXPECT_EQ(PlacesInGroups(content)[slow], 0u);
  MapOf(content);
  for (Group& group : content.groups) group.filling = 0;
  const MapContent rested = content;
  PlanGroups(content, {}, {slow});
  EXPECT_TRUE(content == rested);
  EXPECT_EQ(content.sets, before.sets);  // It takes shards as before.
}

TEST(IndexGroups, OfThreeNodesASlowOneStaysAReplicaAndIsNoHome) {
  MapContent content = PlannedCluster({.nodes = 3, .targets_per_node = 1});
  const MapContent before = content;
  ++content.epoch;
  PlanGroups(content, {}, {TargetIdOf(2, 0)});
  EXPECT_EQ(PlacesMoved(before, content), 0u);
  EXPECT_EQ(HomesOf(content)[TargetIdOf(2, 0)], 0u);
}

TEST(IndexGroups, AReplacedReplicaIsFilledBeforeItLeads) {
  const MapContent before = PlannedCluster({.nodes = 20});
  MapContent after = before;
  SetState(after, {5}, MemberState::kLost);
  PlanPlaces(after);
  uint32_t filling = 0;
  for (size_t i = 0; i < after.groups.size(); ++i) {
    const Group& group = after.groups[i];
    EXPECT_FALSE(group.IsFilling(0));
    if (group.filling == 0) continue;
    ++filling;
    const size_t place = group.filling == 2 ? 1 : 2;
    const FilledPlace mark{.group = static_cast<uint32_t>(i), .target = group.targets[place]};
    MarkFilled(after, std::span(&mark, 1));
    EXPECT_EQ(after.groups[i].filling, 0);
  }
  EXPECT_EQ(filling, PlacesMoved(before, after));
}

TEST(IndexGroups, ANewNodeGetsItsShareByFewMovesAFewAtATime) {
  const ClusterOptions options{.nodes = 20};
  MapContent before = PlannedCluster(options);
  MapContent content = before;
  AddNode(content, 21, options);
  uint32_t rounds = 0;
  while (true) {
    const MapContent was = content;
    PlanPlaces(content);
    content.epoch = was.epoch;
    uint32_t filling = 0;
    std::vector<FilledPlace> filled;
    for (uint32_t i = 0; i < content.groups.size(); ++i) {
      EXPECT_TRUE(content.groups[i].filling == 0 || content.groups[i].filling == 2 ||
                  content.groups[i].filling == 4);
      for (size_t place = 0; place < kIndexReplicas; ++place) {
        if (!content.groups[i].IsFilling(place)) continue;
        ++filling;
        filled.push_back({i, content.groups[i].targets[place]});
      }
    }
    EXPECT_LE(filling, 4096u * 12 / 100 + 1);
    if (filling == 0) break;
    MarkFilled(content, filled);
    ASSERT_LT(++rounds, 20u);
  }
  const uint32_t mean = 4096 * 3 / 84;
  const auto [low, high] = MinMax(PlacesInGroups(content));
  EXPECT_GE(low + mean / 8 + 2, mean);
  EXPECT_LE(PlacesMoved(before, content), 4 * mean + 4);
}

TEST(IndexGroups, ADrainedTargetLeavesOneReplicaOfAGroupAtATime) {
  MapContent content = PlannedCluster({.nodes = 20});
  for (uint32_t node = 1; node <= 10; ++node) {
    for (uint32_t i = 0; i < 4; ++i) content.targets[(node - 1) * 4 + i].draining = true;
  }
  for (int round = 0; round < 4; ++round) {
    PlanPlaces(content);
    std::vector<FilledPlace> filled;
    for (uint32_t i = 0; i < content.groups.size(); ++i) {
      const Group& group = content.groups[i];
      EXPECT_LE(std::popcount(group.filling), 1);
      for (const TargetId target : group.targets) filled.push_back({i, target});
    }
    MarkFilled(content, filled);
  }
  const auto places = PlacesInGroups(content);
  for (uint32_t i = 0; i < 40; ++i) EXPECT_EQ(places.at(content.targets[i].id), 0u);
}

TEST(IndexGroups, ACarriedDiskLeavesThePlacesThatItMayNotHave) {
  MapContent content = PlannedCluster({});
  const TargetId carried = content.targets[0].id;
  content.targets[0].node = {2};
  PlanPlaces(content);
  MapOf(content);
  EXPECT_GT(PlacesInGroups(content)[carried], 0u);
}

}  // namespace
}  // namespace cairn::kv
