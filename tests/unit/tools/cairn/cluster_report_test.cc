// What of a cluster is told, and when a person is called.
#include "tools/cairn/cluster_report.h"

#include <gmock/gmock.h>

namespace cairn::tools {
namespace {

using kv::MemberState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Six nodes of one target each, all well.
ClusterOverview SixNodes() {
  ClusterOverview seen;
  seen.cluster.name = "cairn";
  seen.cluster.self = {1};
  seen.cluster.coordinator = {2};
  seen.cluster.epoch = 42;
  seen.cluster.groups = 256;
  for (uint32_t id = 1; id <= 6; ++id) {
    kv::NodeEntry& node = seen.cluster.nodes.emplace_back();
    node.id = {id};
    node.name = "node-" + std::to_string(id - 1);
    node.addresses = {"10.0.0." + std::to_string(id) + ":7412"};
    node.state = MemberState::kUp;
    kv::ClusterTargetInfo& target = seen.cluster.targets.emplace_back();
    target.id = {100 + id};
    target.node = node.id;
    target.state = MemberState::kUp;
    target.capacity_bytes = 64 * kv::kMiB;
    target.free_bytes = 32 * kv::kMiB;
    target.groups = 128;
  }
  kv::SpaceInfo& space = seen.spaces.emplace_back();
  space.options.name = "kv";
  space.options.data_shards = 2;
  space.options.parity_shards = 2;
  return seen;
}

TEST(ClusterReport, OfAHealthyClusterNobodyIsCalled) {
  const ClusterOverview seen = SixNodes();
  EXPECT_THAT(ClusterConcerns(seen), IsEmpty());
  const std::string text = ClusterText(seen, "unix:/x");
  EXPECT_THAT(text, HasSubstr("all is well"));
  EXPECT_THAT(text, HasSubstr("coordinator  node-1\n"));
  EXPECT_THAT(text, HasSubstr("10.0.0.6:7412"));
  EXPECT_THAT(ClusterTargetsText(seen.cluster), HasSubstr("106"));
  const Json json = ClusterJson(seen, "unix:/x");
  EXPECT_EQ(json["healthy"], true);
  EXPECT_EQ(json["asked"], "node-0");
  EXPECT_EQ(json["coordinator"], "node-1");
  ASSERT_EQ(json["nodes"].size(), 6u);
  EXPECT_EQ(json["nodes"][3]["name"], "node-3");
  EXPECT_EQ(json["nodes"][3]["targets"], 1);
  EXPECT_EQ(json["nodes"][3]["capacity_bytes"], 64 * kv::kMiB);
  EXPECT_EQ(json["nodes"][3]["vacated"], false);
  EXPECT_EQ(json["targets"][3]["node"], "node-3");
}

TEST(ClusterReport, InAnUpgradeWhoIsToFollowIsTold) {
  ClusterOverview seen = SixNodes();
  for (kv::NodeEntry& node : seen.cluster.nodes) node.protocol_max = 2;
  EXPECT_THAT(ClusterText(seen, ""), HasSubstr("protocol     2\n"));
  EXPECT_EQ(ClusterJson(seen, "")["protocol"], 2);
  seen.cluster.nodes[1].protocol_max = seen.cluster.nodes[4].protocol_max = 1;
  EXPECT_THAT(ClusterText(seen, ""),
              HasSubstr("protocol     1; newer once these speak it: node-1, node-4\n"));
  EXPECT_EQ(ClusterJson(seen, "")["protocol"], 1);
  EXPECT_EQ(ClusterJson(seen, "")["nodes"][4]["protocol_max"], 1);
  // A node that is lost holds nobody back.
  seen.cluster.nodes[1].state = seen.cluster.nodes[4].state = MemberState::kLost;
  EXPECT_THAT(ClusterText(seen, ""), HasSubstr("protocol     2\n"));
}

TEST(ClusterReport, WhoIsAwayIsAConcernUnlessItWasDrained) {
  ClusterOverview seen = SixNodes();
  seen.cluster.nodes[3].state = MemberState::kSuspect;
  seen.cluster.targets[3].state = MemberState::kSuspect;
  EXPECT_THAT(ClusterConcerns(seen), ElementsAre("node-3 is suspect: it is not heard of"));
  seen.cluster.nodes[3].draining = seen.cluster.targets[3].draining = true;
  EXPECT_THAT(ClusterConcerns(seen), IsEmpty());
  seen.cluster.targets[4].state = MemberState::kLost;
  EXPECT_THAT(ClusterConcerns(seen), ElementsAre(HasSubstr("target 105 of node-4 is lost")));
}

TEST(ClusterReport, WithoutCoordinatorHomeOrControlStoreAPersonIsCalled) {
  ClusterOverview seen = SixNodes();
  seen.cluster.coordinator = kv::kNoNode;
  EXPECT_THAT(ClusterConcerns(seen), ElementsAre(HasSubstr("nobody coordinates")));
  seen.cluster.control = kv::Status(kv::Code::kUnavailable, "etcd is away");
  EXPECT_THAT(ClusterConcerns(seen), ElementsAre(HasSubstr("etcd is away; blocks are served")));
  EXPECT_EQ(ClusterJson(seen, "")["control_store_answers"], false);
  EXPECT_EQ(ClusterJson(seen, "")["coordinator"], Json());
  seen = SixNodes();
  seen.cluster.groups_homeless = 3;
  EXPECT_THAT(ClusterConcerns(seen), ElementsAre(HasSubstr("3 of 256 index groups")));
}

TEST(ClusterReport, ADrainedNodeIsNews) {
  ClusterOverview seen = SixNodes();
  seen.cluster.nodes[3].draining = seen.cluster.targets[3].draining = true;
  EXPECT_THAT(ClusterNews(seen.cluster), IsEmpty());
  EXPECT_THAT(ClusterText(seen, ""), HasSubstr("up, draining"));
  seen.cluster.targets[3].vacated = true;
  EXPECT_THAT(ClusterNews(seen.cluster),
              ElementsAre("node-3 is drained: it may be taken away"));
  EXPECT_THAT(ClusterText(seen, ""), HasSubstr("up, drained"));
  EXPECT_EQ(ClusterJson(seen, "")["nodes"][3]["vacated"], true);
  seen.cluster.nodes[3].draining = false;
  EXPECT_THAT(ClusterNews(seen.cluster), ElementsAre(HasSubstr("target 104 of node-3")));
}

TEST(ClusterReport, ADrainThatCannotEndIsAConcern) {
  ClusterOverview seen = SixNodes();
  seen.cluster.nodes[3].draining = true;
  EXPECT_THAT(StuckDrains(seen), IsEmpty());
  seen.spaces[0].options.data_shards = 4;
  EXPECT_THAT(StuckDrains(seen),
              ElementsAre(HasSubstr("namespace 'kv' (4+2) is wider than the 5 nodes")));
  EXPECT_THAT(ClusterConcerns(seen), Not(IsEmpty()));
  seen.cluster.targets[3].vacated = true;  // There was nothing of it there.
  EXPECT_THAT(StuckDrains(seen), IsEmpty());
  seen.cluster.nodes[3].draining = false;
  seen.cluster.targets[3].vacated = false;
  EXPECT_THAT(StuckDrains(seen), IsEmpty());
}

}  // namespace
}  // namespace cairn::tools
