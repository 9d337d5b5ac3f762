// Placement and homes by a cluster's map.
#include "kvstore/home/map_placement.h"

#include <gtest/gtest.h>

#include <map>

#include "kvstore/home/map_homes.h"
#include "kvstore/types/group_hash.h"
#include "tests/unit/kvstore/client/fake_target.h"

namespace cairn::kv {
namespace {

// Eight nodes of two targets; sets of four in distinct nodes: the first targets of nodes 1 to 4, of
// 5 to 8, and the second ones likewise.
class MapPlacementTest : public ::testing::Test {
 protected:
  MapPlacementTest() {
    content_ = EmptyMap({.group_bits = 4, .data_shards = 2, .parity_shards = 2}).value();
    std::vector<TargetPort*> ports;
    for (uint32_t n = 1; n <= 8; ++n) {
      content_.nodes.push_back(
          {.id = {n}, .name = std::to_string(n), .rack = "", .state = MemberState::kUp});
      for (uint32_t t = 0; t < 2; ++t) {
        targets_.push_back(std::make_unique<FakeTarget>(n * 10 + t));
        ports.push_back(targets_.back().get());
        content_.targets.push_back({.id = {n * 10 + t},
                                    .slot = static_cast<uint16_t>(content_.targets.size()),
                                    .node = {n},
                                    .capacity = kGiB,
                                    .state = MemberState::kUp});
      }
    }
    for (uint32_t s = 0; s < 4; ++s) {
      StripeSet set{.id = s + 1, .targets = {}, .weight = 1024};
      for (uint32_t n = 1; n <= 4; ++n) set.targets.push_back({(s / 2 * 4 + n) * 10 + s % 2});
      content_.sets.push_back(set);
    }
    for (uint32_t g = 0; g < content_.groups.size(); ++g) {
      for (uint32_t r = 0; r < kIndexReplicas; ++r) {
        content_.groups[g].targets[r] = {(1 + (g + r) % 8) * 10};
      }
    }
    set_ = std::make_unique<TargetSet>(clock_, ports);
    Remap();
  }

  void Remap() {
    ++content_.epoch;
    auto created = ClusterMap::Create(content_);
    KV_CHECK(created.ok());
    map_ = created.value();
    placement_ = std::make_unique<MapPlacement>(NodeId{1}, *set_, random_, map_);
  }
  FakeTarget& target(uint64_t id) {
    return *targets_[(id / 10 - 1) * 2 + id % 10];
  }

  FakeClock clock_;
  Random random_{7};
  MapContent content_;
  std::vector<std::unique_ptr<FakeTarget>> targets_;
  std::unique_ptr<TargetSet> set_;
  std::shared_ptr<const ClusterMap> map_;
  std::unique_ptr<MapPlacement> placement_;
};

TEST_F(MapPlacementTest, AStripeLiesWithinOneSet) {
  std::map<TargetId, int> uses;
  for (int i = 0; i < 400; ++i) {
    const auto chosen = placement_->ChooseTargets(3, random_);
    ASSERT_TRUE(chosen.has_value());
    int sets = 0;
    for (const StripeSet& set : map_->sets()) {
      const auto is_in = [&](TargetId id) {
        return std::find(set.targets.begin(), set.targets.end(), id) != set.targets.end();
      };
      if (std::all_of(chosen->begin(), chosen->end(), is_in)) ++sets;
    }
    EXPECT_EQ(sets, 1);
    for (const TargetId id : *chosen) ++uses[id];
  }
  EXPECT_EQ(uses.size(), 16u);
}

TEST_F(MapPlacementTest, TheBetterOfTwoSetsTakesTheStripe) {
  target(11).capacity = 1;  // Its set is full.
  int full = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto chosen = placement_->ChooseTargets(4, random_);
    full += std::find(chosen->begin(), chosen->end(), TargetId{11}) != chosen->end() ? 1 : 0;
  }
  EXPECT_LT(full, 130);  // Only when it is drawn twice: 1 of 16.
  EXPECT_GT(full, 20);
}

TEST_F(MapPlacementTest, TheWidthIsThatOfTheWidestSet) {
  EXPECT_EQ(placement_->width_max(), 4u);
  for (const uint64_t id : {10u, 11u, 50u, 51u}) set_->Suspect({id});
  EXPECT_EQ(placement_->width_max(), 3u);
  EXPECT_FALSE(placement_->ChooseTargets(4, random_).has_value());
  EXPECT_TRUE(placement_->ChooseTargets(3, random_).has_value());
}

TEST_F(MapPlacementTest, ALostShardGoesToAnotherFailureDomain) {
  const std::vector<TargetId> barred{{10}, {20}, {30}, {40}};
  for (int i = 0; i < 100; ++i) {
    const auto chosen = placement_->ChooseOther(barred, random_);
    ASSERT_TRUE(chosen.has_value());
    EXPECT_GE(chosen->value, 50u);
  }
}

TEST_F(MapPlacementTest, TheIndexLiesOnTheGroupsTargets) {
  const NamespaceId space{{1, 2}};
  const RunId run{{3, 4}};
  const StripeId stripe = DrawStripeId(space, run, random_);
  const Group& group = map_->GroupOf(GroupHashOf(space, run));
  const auto order = placement_->ReplicaOrder(space, run);
  EXPECT_EQ(order, std::vector<TargetId>(group.targets.begin(), group.targets.end()));
  const auto filers = placement_->FilersOf(stripe);
  ASSERT_EQ(filers.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(filers[i]->id(), order[i]);
  EXPECT_EQ(placement_->NearTargets().size(), 2u);
}

TEST_F(MapPlacementTest, ANodeIsNoHomeBeyondItsOwnLease) {
  uint64_t wanted = 0;
  MapHomes homes(clock_, NodeId{1}, map_, [&](uint64_t epoch) { wanted = epoch; });
  const uint16_t hash = 0;  // Group 0: node 1 is its home.
  EXPECT_EQ(homes.HomeOf(hash), kNoNode);
  homes.SetMemberUntil(clock_.Now() + Seconds(10));
  EXPECT_EQ(homes.HomeOf(hash), NodeId{1});
  EXPECT_EQ(homes.HomeOf(0x1000), NodeId{2});
  clock_.Advance(10'000);
  EXPECT_EQ(homes.HomeOf(hash), kNoNode);
  homes.NoteEpoch(map_->epoch());
  EXPECT_EQ(wanted, 0u);
  homes.NoteEpoch(map_->epoch() + 3);
  EXPECT_EQ(wanted, map_->epoch() + 3);
}

// Of a group with targets 10, 20 and 30.
TEST_F(MapPlacementTest, WhoIsFilledIsNoSourceAndWhoIsAwayStillHasAPlace) {
  NamespaceId space{{1, 1}};
  RunId run{{0, 1}};
  while (map_->GroupIndexOf(GroupHashOf(space, run)) != 0) ++run.low;
  using Ids = std::vector<TargetId>;
  EXPECT_EQ(placement_->Sources(space, run), (Ids{{10}, {20}, {30}}));
  content_.groups[0].filling = 1u << 1;
  content_.targets[4].state = MemberState::kSuspect;  // 30.
  Remap();
  EXPECT_EQ(placement_->ReplicaOrder(space, run), (Ids{{10}, {20}}));
  EXPECT_EQ(placement_->Sources(space, run), (Ids{{10}}));
  EXPECT_EQ(placement_->Places(space, run), (Ids{{10}, {20}, {30}}));
  EXPECT_EQ(placement_->Filled(space, run), (Ids{{10}, {30}}));
  content_.groups[0].filling = 1u << 0 | 1u << 1;
  Remap();
  EXPECT_EQ(placement_->Sources(space, run), (Ids{{10}, {20}}));  // Better than nobody.
}

}  // namespace
}  // namespace cairn::kv
