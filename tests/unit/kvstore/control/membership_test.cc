// When members are suspect and lost, and when nobody is blamed.
#include "kvstore/control/membership.h"

#include "tests/unit/kvstore/control/cluster_builder.h"

namespace cairn::kv {
namespace {

// A coordinator that looks once a second at nodes of one target each.
class MembershipTest : public ::testing::Test {
 protected:
  void AddNodes(uint32_t count) {
    for (uint32_t i = 1; i <= count; ++i) alive_.insert(i);
    Run(10);
  }
  void Kill(uint32_t first, uint32_t last) {
    for (uint32_t i = first; i <= last; ++i) alive_.erase(i);
  }

  MembershipNews Step() {
    now_ = now_ + Seconds(1);
    Observation seen{.now = now_, .nodes = {}};
    for (const uint32_t id : alive_) {
      SeenNode node{.entry = NodeOf(id, 0), .targets = {}};
      node.targets.push_back({.id = TargetIdOf(id, 0), .capacity = kTiB});
      node.targets[0].failed = failed_.contains(id);
      if (versions_.contains(id)) {
        node.entry.protocol_min = node.entry.protocol_max = versions_[id];
      }
      seen.nodes.push_back(node);
    }
    seen.draining_nodes = draining_;
    ++content_.epoch;
    return membership_.Step(seen, content_);
  }
  MembershipNews Run(int seconds) {
    MembershipNews news;
    for (int i = 0; i < seconds; ++i) news = Step();
    return news;
  }
  MemberState NodeState(uint32_t id) { return MapOf(content_)->FindNode({id})->state; }
  MemberState TargetState(uint32_t id) {
    return MapOf(content_)->FindTarget(TargetIdOf(id, 0))->state;
  }
  uint32_t LostCount() {
    return static_cast<uint32_t>(
        std::count_if(content_.nodes.begin(), content_.nodes.end(),
                      [](const NodeEntry& node) { return node.state == MemberState::kLost; }));
  }

  MapContent content_ = EmptyMap({}).value();
  Membership membership_{{.lost_after = Seconds(60)}};
  Instant now_{1};
  std::set<uint32_t> alive_;
  std::set<uint32_t> failed_;
  std::map<uint32_t, uint16_t> versions_;
  std::vector<NodeId> draining_;
};

TEST_F(MembershipTest, ANewNodeJoinsAndIsUpOnceItIsSteady) {
  alive_ = {1};
  Run(1);
  EXPECT_EQ(NodeState(1), MemberState::kJoining);
  EXPECT_EQ(TargetState(1), MemberState::kJoining);
  Run(5);
  EXPECT_EQ(NodeState(1), MemberState::kUp);
  EXPECT_EQ(TargetState(1), MemberState::kUp);
}

TEST_F(MembershipTest, ASilentNodeIsSuspectAtOnceAndLostAfterItsTime) {
  AddNodes(12);
  Kill(3, 3);
  Run(1);
  EXPECT_EQ(NodeState(3), MemberState::kSuspect);
  EXPECT_EQ(TargetState(3), MemberState::kSuspect);
  Run(59);
  EXPECT_EQ(NodeState(3), MemberState::kSuspect);
  Run(1);
  EXPECT_EQ(NodeState(3), MemberState::kLost);
  EXPECT_EQ(TargetState(3), MemberState::kLost);
}

TEST_F(MembershipTest, ALostNodeThatComesBackIsTakenInAgain) {
  AddNodes(12);
  Kill(3, 3);
  Run(62);
  ASSERT_EQ(NodeState(3), MemberState::kLost);
  alive_.insert(3);
  Run(1);
  EXPECT_EQ(NodeState(3), MemberState::kJoining);
  Run(6);
  EXPECT_EQ(NodeState(3), MemberState::kUp);
  EXPECT_EQ(TargetState(3), MemberState::kUp);
}

TEST_F(MembershipTest, NeverMoreThanAQuarterIsLost) {
  AddNodes(12);
  Kill(1, 3);
  Run(62);
  EXPECT_EQ(LostCount(), 3u);
  Kill(4, 4);
  EXPECT_TRUE(Run(300).breaker_open);
  EXPECT_EQ(LostCount(), 3u);
  EXPECT_EQ(NodeState(4), MemberState::kSuspect);
  EXPECT_EQ(TargetState(4), MemberState::kSuspect);
  alive_.insert(1);
  EXPECT_FALSE(Run(10).breaker_open);
  EXPECT_EQ(NodeState(4), MemberState::kLost);
}

TEST_F(MembershipTest, TooManyAtOnceAreAllGivenTheBenefitOfTheDoubt) {
  AddNodes(12);
  Kill(1, 4);
  EXPECT_TRUE(Run(300).breaker_open);
  EXPECT_EQ(LostCount(), 0u);
}

TEST_F(MembershipTest, WhatAPersonWantsGoneIsNotHeldByTheBreaker) {
  AddNodes(12);
  Kill(1, 4);
  Run(300);
  draining_ = {{2}};
  EXPECT_FALSE(Run(2).breaker_open);
  EXPECT_EQ(LostCount(), 4u);
}

TEST_F(MembershipTest, InThreeNodesNobodyIsLostByItself) {
  AddNodes(3);
  Kill(1, 1);
  Run(300);
  EXPECT_EQ(LostCount(), 0u);
}

TEST_F(MembershipTest, NobodyIsBlamedForTheCoordinatorsOwnStall) {
  AddNodes(12);
  Kill(3, 3);
  Run(50);
  now_ = now_ + Seconds(100);
  EXPECT_TRUE(Step().stalled);
  EXPECT_EQ(NodeState(3), MemberState::kSuspect);
  Run(59);
  EXPECT_EQ(NodeState(3), MemberState::kSuspect);
  Run(2);
  EXPECT_EQ(NodeState(3), MemberState::kLost);
}

TEST_F(MembershipTest, ANewCoordinatorGivesEverybodyTheWholeTimeAgain) {
  AddNodes(12);
  Kill(3, 3);
  Run(50);
  Membership successor({.lost_after = Seconds(60)});
  Observation seen{.now = now_, .nodes = {}};
  successor.Step(seen, content_);
  EXPECT_EQ(LostCount(), 0u);
}

TEST_F(MembershipTest, AFailedTargetOfALivingNodeIsLostByItself) {
  AddNodes(12);
  failed_.insert(5);
  Run(1);
  EXPECT_EQ(NodeState(5), MemberState::kUp);
  EXPECT_EQ(TargetState(5), MemberState::kSuspect);
  Run(61);
  EXPECT_EQ(TargetState(5), MemberState::kLost);
  EXPECT_EQ(NodeState(5), MemberState::kUp);
  // And stays so while its node is suspect, too.
  Kill(5, 5);
  Run(2);
  EXPECT_EQ(NodeState(5), MemberState::kSuspect);
  EXPECT_EQ(TargetState(5), MemberState::kLost);
}

TEST_F(MembershipTest, ANewTargetStartsSlowly) {
  AddNodes(1);
  EXPECT_EQ(content_.targets[0].weight_percent, 10);
  Run(180);
  EXPECT_EQ(content_.targets[0].weight_percent, 20);
  Run(9 * 180);
  EXPECT_EQ(content_.targets[0].weight_percent, 100);
  Run(200);
  EXPECT_EQ(content_.targets[0].weight_percent, 100);
}

TEST_F(MembershipTest, WhoSpeaksNoCommonVersionIsNotTakenIn) {
  AddNodes(3);
  alive_.insert(4);
  versions_[4] = 2;
  const MembershipNews news = Run(10);
  ASSERT_EQ(news.refused.size(), 1u);
  EXPECT_EQ(content_.nodes.size(), 3u);
}

TEST_F(MembershipTest, DrainingIsOfNodesAndTheirTargetsAndCanBeTakenBack) {
  AddNodes(3);
  draining_ = {{2}};
  Run(1);
  EXPECT_TRUE(content_.nodes[1].draining);
  EXPECT_TRUE(MapOf(content_)->FindTarget(TargetIdOf(2, 0))->draining);
  EXPECT_EQ(MapOf(content_)->FindTarget(TargetIdOf(2, 0))->since, content_.epoch);
  draining_.clear();
  Run(1);
  EXPECT_FALSE(content_.nodes[1].draining);
}

TEST_F(MembershipTest, NothingChangesWhileNothingHappens) {
  AddNodes(12);
  MapContent before = content_;
  Run(50);
  before.epoch = content_.epoch;
  EXPECT_EQ(content_, before);
}

TEST_F(MembershipTest, ALostClientNodeIsForgotten) {
  AddNodes(8);
  Observation seen{.now = now_, .nodes = {}};
  for (uint32_t id = 1; id <= 8; ++id) {
    seen.nodes.push_back({.entry = NodeOf(id, 0), .targets = {{TargetIdOf(id, 0), kTiB}}});
  }
  seen.nodes.push_back({.entry = NodeOf(50, 0), .targets = {}});
  membership_.Step(seen, content_);
  EXPECT_EQ(content_.nodes.size(), 9u);
  Run(70);
  EXPECT_EQ(content_.nodes.size(), 8u);
}

}  // namespace
}  // namespace cairn::kv
