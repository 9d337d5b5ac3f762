// Lookups of a map, and what is refused as a map.
#include "kvstore/control/cluster_map.h"

#include <gmock/gmock.h>

#include "tests/unit/kvstore/control/cluster_builder.h"

namespace cairn::kv {
namespace {

using ::testing::HasSubstr;

TEST(ClusterMap, FindsNodesTargetsGroupsAndHomes) {
  const auto map = MapOf(PlannedCluster({}));
  EXPECT_EQ(map->epoch(), 2u);
  ASSERT_NE(map->FindNode({7}), nullptr);
  EXPECT_EQ(map->FindNode({7})->name, "node-7");
  EXPECT_EQ(map->FindNode({13}), nullptr);
  ASSERT_NE(map->FindTarget(TargetIdOf(3, 2)), nullptr);
  EXPECT_EQ(map->FindTarget(TargetIdOf(3, 2))->node, NodeId{3});
  EXPECT_EQ(map->FindTarget({5}), nullptr);
  EXPECT_EQ(map->GroupIndexOf(0xffff), 4095u);
  EXPECT_EQ(map->GroupIndexOf(0x0010), 1u);
  const Group& group = map->GroupOf(0x1234);
  EXPECT_EQ(&group, &map->groups()[0x123]);
  EXPECT_EQ(map->HomeOf(group), map->FindTarget(group.targets[0])->node);
}

TEST(ClusterMap, ANewClusterHasNobody) {
  const auto map = MapOf(EmptyMap({}).value());
  Random random(1);
  EXPECT_EQ(map->DrawSet(random), nullptr);
  EXPECT_EQ(map->HomeOf(map->GroupOf(0)), kNoNode);
  EXPECT_EQ(map->protocol(), 0u);
}

TEST(ClusterMap, DrawsSetsByWeight) {
  MapContent content = PlannedCluster({});
  for (StripeSet& set : content.sets) set.weight = 0;
  content.sets[1].weight = 3;
  content.sets[4].weight = 1;
  const auto map = MapOf(content);
  Random random(1);
  std::map<uint32_t, uint32_t> drawn;
  for (int i = 0; i < 4000; ++i) ++drawn[map->DrawSet(random)->id];
  EXPECT_EQ(drawn.size(), 2u);
  EXPECT_NEAR(drawn[content.sets[1].id], 3000, 200);
}

TEST(ClusterMap, SpeaksWhatItsOldestNodeSpeaks) {
  MapContent content = PlannedCluster({});
  for (NodeEntry& node : content.nodes) node.protocol_max = 3;
  content.nodes[4].protocol_max = 2;
  EXPECT_EQ(MapOf(content)->protocol(), 2u);
  content.nodes[4].state = MemberState::kLost;
  EXPECT_EQ(MapOf(content)->protocol(), 3u);
}

struct Breakage {
  std::string name;
  std::function<void(MapContent&)> apply;
  std::string words;
};

class RefusedMap : public ::testing::TestWithParam<Breakage> {};

TEST_P(RefusedMap, SaysWhatIsWrong) {
  MapContent content = PlannedCluster({});
  GetParam().apply(content);
  const auto map = ClusterMap::Create(std::move(content));
  ASSERT_FALSE(map.ok());
  EXPECT_EQ(map.code(), Code::kInvalid);
  EXPECT_THAT(map.status().message(), HasSubstr(GetParam().words));
}

INSTANTIATE_TEST_SUITE_P(
    ClusterMap, RefusedMap,
    ::testing::Values(
        Breakage{"epoch", [](MapContent& map) { map.epoch = 0; }, "epoch 0"},
        Breakage{"group_bits", [](MapContent& map) { map.shape.group_bits = 17; }, "group_bits"},
        Breakage{"groups", [](MapContent& map) { map.groups.pop_back(); }, "number of groups"},
        Breakage{"node_order", [](MapContent& map) { std::swap(map.nodes[0], map.nodes[1]); },
                 "out of order"},
        Breakage{"node_zero", [](MapContent& map) { map.nodes[0].id = kNoNode; }, "id 0"},
        Breakage{"node_name", [](MapContent& map) { map.nodes[0].name.resize(129); }, "too long"},
        Breakage{"protocol", [](MapContent& map) { map.nodes[0].protocol_min = 2; }, "protocol"},
        Breakage{"target_twice", [](MapContent& map) { map.targets[1].id = map.targets[0].id; },
                 "twice"},
        Breakage{"target_nowhere", [](MapContent& map) { map.targets[1].node = {99}; },
                 "not there"},
        Breakage{"weight", [](MapContent& map) { map.targets[1].weight_percent = 101; },
                 "full weight"},
        Breakage{"set_domain",
                 [](MapContent& map) {
                   map.sets[0].targets[1] = map.sets[0].targets[0];
                 },
                 "one failure domain"},
        Breakage{"group_domain",
                 [](MapContent& map) { map.groups[9].targets[1] = map.groups[9].targets[0]; },
                 "one failure domain"},
        Breakage{"group_target", [](MapContent& map) { map.groups[9].targets[1] = {77}; },
                 "not there"},
        Breakage{"filling", [](MapContent& map) { map.groups[9].filling = 8; },
                 "out of bounds"}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace cairn::kv
