// Nodes that join a cluster are one store: what one puts any other gets, also with two dead.
#include <gtest/gtest.h>

#include "kvstore/control/member_admin.h"
#include "tests/support/random_chain.h"
#include "tests/support/status_matchers.h"
#include "tests/sim/cluster_world.h"

namespace cairn::kv {
namespace {

using testing::HasCode;
using testing::IsOk;

Chain MakeChain(ClusterWorld& world, size_t blocks, uint32_t size = 20'000) {
  return RandomChain(world.random(), blocks, size);
}

class ClusterTest : public ::testing::Test {
 protected:
  static ClusterWorld::Options Wide(uint32_t nodes, uint8_t data_shards) {
    return {.nodes = nodes, .data_shards = data_shards};
  }

  void StartAll(ClusterWorld::Options options) {
    world_ = std::make_unique<ClusterWorld>(options);
    shards_ = options;
    for (uint32_t n = 0; n < options.nodes; ++n) ASSERT_THAT(world_->Start(n), IsOk());
    ASSERT_TRUE(world_->AwaitReady(Seconds(60)));
  }

  NamespaceOptions Space() const {
    return {.name = "tests",
            .fingerprint = "f",
            .data_shards = shards_.data_shards,
            .parity_shards = shards_.parity_shards,
            .run_blocks = 4};
  }
  uint32_t Coordinating() {
    for (uint32_t n = 0; n < shards_.nodes; ++n) {
      const auto& member = world_->machine(n).member;
      if (world_->machine(n).node != nullptr && member->view().coordinates) return n;
    }
    ADD_FAILURE() << "nobody coordinates";
    return 0;
  }
  NamespaceId AttachAt(uint32_t n) {
    auto space = world_->Await(world_->store(n).Attach(Space()));
    EXPECT_THAT(space.status(), IsOk());
    return space.ok() ? space.value() : NamespaceId();
  }

  Status PutAt(uint32_t n, const Chain& chain, Ack ack = Ack::kCached) {
    ChainPut put{.space = AttachAt(n), .chain = chain.ids};
    put.ack = ack;
    for (size_t i = 0; i < chain.ids.size(); ++i) {
      put.blocks.push_back({chain.ids[i], chain.bytes[i].span()});
    }
    for (const Status& outcome : world_->Await(world_->store(n).Put(std::move(put)))) {
      if (!outcome.ok()) return outcome;
    }
    return Status();
  }

  // Two at each of six nodes.
  std::vector<Chain> PutTwelve() {
    std::vector<Chain> chains;
    for (uint32_t n = 0; n < 12; ++n) {
      chains.push_back(MakeChain(*world_, 4));
      EXPECT_THAT(PutAt(n % 6, chains.back()), IsOk());
    }
    return chains;
  }

  // kCorrupt when the bytes are not those of the chain.
  Status GetAt(uint32_t n, const Chain& chain) {
    const NamespaceId space = AttachAt(n);
    for (size_t i = 0; i < chain.ids.size(); ++i) {
      Bytes room(AlignUp(chain.bytes[i].size(), kSectorSize));
      const std::vector<BlockRead> reads{{chain.ids[i], room.span()}};
      const auto results = world_->Await(
          world_->store(n).Get(space, chain.ids, reads, world_->clock().Now() + Seconds(30)));
      if (!results[0].status.ok()) return results[0].status;
      const ByteSpan got = std::as_const(room).span().first(chain.bytes[i].size());
      const ByteSpan wanted = chain.bytes[i].span();
      if (!std::equal(got.begin(), got.end(), wanted.begin())) return Status(Code::kCorrupt);
    }
    return Status();
  }

  size_t FiledAt(uint32_t n) {
    return world_->machine(n).node->targets()[0]->index().states().size();
  }

  // Bytes of all namespaces, as node n and what the others tell it have it.
  uint64_t StoredAt(uint32_t n) {
    uint64_t stored = 0;
    for (const SpaceInfo& info : world_->machine(n).node->striped().Spaces()) {
      stored += info.stored_bytes;
    }
    return stored;
  }

  ClusterInfo DescribeAt(uint32_t n) {
    auto seen = world_->Await(world_->machine(n).member->admin().DescribeCluster());
    EXPECT_THAT(seen, IsOk());
    return std::move(seen).value();
  }
  // The one target of a node.
  static ClusterTargetInfo TargetAt(const ClusterInfo& seen, NodeId node) {
    const auto found = std::find_if(seen.targets.begin(), seen.targets.end(),
                                    [node](const auto& target) { return target.node == node; });
    return found == seen.targets.end() ? ClusterTargetInfo() : *found;
  }
  bool Knows(uint32_t n, NodeId node) {
    const ClusterInfo seen = DescribeAt(n);
    return std::any_of(seen.nodes.begin(), seen.nodes.end(),
                       [node](const NodeEntry& entry) { return entry.id == node; });
  }
  // Whether node n says so of the other one's target within minutes.
  bool Becomes(uint32_t n, NodeId node, bool (*done)(const ClusterTargetInfo&)) {
    for (int second = 0; second < 300; ++second) {
      if (done(TargetAt(DescribeAt(n), node))) return true;
      world_->RunFor(Seconds(1));
    }
    return false;
  }

  ClusterWorld::Options shards_;
  std::unique_ptr<ClusterWorld> world_;
};

TEST_F(ClusterTest, WhatOneNodePutsEveryOtherGets) {
  StartAll({.nodes = 4});
  std::vector<Chain> chains;
  for (uint32_t n = 0; n < 4; ++n) {
    for (int i = 0; i < 4; ++i) {
      chains.push_back(MakeChain(*world_, 6));
      ASSERT_THAT(PutAt(n, chains.back(), i == 0 ? Ack::kDurable : Ack::kCached), IsOk());
    }
  }
  for (uint32_t n = 0; n < 4; ++n) {
    for (const Chain& chain : chains) EXPECT_THAT(GetAt(n, chain), IsOk());
  }
}

TEST_F(ClusterTest, ANamespaceIsMadeOnceAndDeletedEverywhere) {
  StartAll({.nodes = 4});
  const NamespaceId space = AttachAt(0);
  for (uint32_t n = 1; n < 4; ++n) EXPECT_EQ(AttachAt(n), space);
  EXPECT_THAT(world_->Await(world_->machine(2).node->striped().CreateSpace(Space())).status(),
              HasCode(Code::kConflict));
  const Chain chain = MakeChain(*world_, 4);
  ASSERT_THAT(PutAt(1, chain), IsOk());
  ASSERT_THAT(world_->Await(world_->machine(3).node->striped().DeleteSpace("tests")), IsOk());
  world_->RunFor(Seconds(5));
  const NamespaceId again = AttachAt(0);
  EXPECT_NE(again, space);
  EXPECT_THAT(GetAt(1, chain), HasCode(Code::kNotFound));
}

TEST_F(ClusterTest, TwoOfTwelveNodesDieAndNothingIsLost) {
  StartAll(Wide(12, 10));
  std::vector<Chain> chains;
  for (uint32_t n = 0; n < 12; ++n) {
    chains.push_back(MakeChain(*world_, 8));
    ASSERT_THAT(PutAt(n, chains.back()), IsOk());
  }
  world_->Kill(3);
  world_->Kill(8);
  const Chain later = MakeChain(*world_, 8);  // Nobody knows yet that they are away.
  ASSERT_THAT(PutAt(1, later), IsOk());
  for (const Chain& chain : chains) EXPECT_THAT(GetAt(0, chain), IsOk());
  ASSERT_TRUE(world_->AwaitReady(Seconds(30)));
  for (const Chain& chain : chains) EXPECT_THAT(GetAt(5, chain), IsOk());
  EXPECT_THAT(GetAt(2, later), IsOk());
  ASSERT_THAT(world_->Start(3), IsOk());
  ASSERT_THAT(world_->Start(8), IsOk());
  ASSERT_TRUE(world_->AwaitReady(Seconds(60)));
  for (const Chain& chain : chains) EXPECT_THAT(GetAt(3, chain), IsOk());
  EXPECT_THAT(GetAt(8, later), IsOk());
  // What was put without them is made whole, so that any two others may die.
  const auto lacking = [this] {
    uint64_t stripes = 0;
    for (uint32_t n = 0; n < 12; ++n) stripes += world_->machine(n).node->stats().stripes_lacking;
    return stripes;
  };
  EXPECT_TRUE(world_->AwaitThat([&] { return lacking() == 0; }, Seconds(60)));
  for (uint32_t a = 4; a < 7; ++a) {
    world_->Kill(a);
    world_->Kill(a + 5);
    EXPECT_THAT(GetAt(3, later), IsOk());
    ASSERT_THAT(world_->Start(a), IsOk());
    ASSERT_THAT(world_->Start(a + 5), IsOk());
    ASSERT_TRUE(world_->AwaitReady(Seconds(60)));
  }
}

// Tried again and again while a node is away: one that has a replica of every group, or one that
// has shards, and becomes a replica of some meanwhile.
TEST_F(ClusterTest, WhatADeletionWasAcknowledgedOfStaysDeleted) {
  for (const uint32_t victim : {2u, 5u}) {
    StartAll({.nodes = 6, .data_shards = 1});
    const std::vector<Chain> chains = PutTwelve();
    const auto remove = [&](const Chain& chain) {
      return world_->Await(world_->store(3).Delete(AttachAt(3), chain.ids, 0));
    };
    std::vector<size_t> deleted;
    world_->Kill(victim);
    for (const int64_t seconds : {0, 12, 12}) {
      world_->RunFor(Seconds(seconds));
      for (size_t i = 0; i < chains.size(); ++i) {
        if (remove(chains[i]).ok()) deleted.push_back(i);
      }
    }
    EXPECT_EQ(deleted.empty(), victim == 2);
    EXPECT_THAT(world_->Start(victim), IsOk());
    ASSERT_TRUE(world_->AwaitReady(Seconds(120)));
    world_->RunFor(Seconds(30));
    for (const size_t i : deleted) {
      for (uint32_t n = 0; n < 6; ++n) EXPECT_FALSE(GetAt(n, chains[i]).ok()) << i << " at " << n;
    }
    for (const Chain& chain : chains) EXPECT_THAT(remove(chain), IsOk());
    for (const Chain& chain : chains) EXPECT_FALSE(GetAt(victim, chain).ok());
    world_->RunFor(Seconds(30));
    for (uint32_t n = 0; n < 6; ++n) {
      EXPECT_EQ(FiledAt(n), 0u) << n;   // By former replicas, too.
      EXPECT_EQ(StoredAt(n), 0u) << n;  // By the count of former homes.
    }
  }
}

TEST_F(ClusterTest, ATakenNameIsRefusedAndTheClusterStays) {
  StartAll({.nodes = 4});
  const Chain chain = MakeChain(*world_, 4);
  ASSERT_THAT(PutAt(0, chain), IsOk());
  const uint32_t twin = world_->AddMachine();
  world_->change_options = [](ClusterOptions& options) {
    options.agent.self.name = "node-2";
    options.join_timeout = Seconds(12);
  };
  const Status refused = world_->Start(twin);
  EXPECT_THAT(refused, HasCode(Code::kConflict));
  EXPECT_NE(refused.message().find("cluster.node: the name 'node-2' is taken"), std::string::npos);
  EXPECT_THAT(GetAt(2, chain), IsOk());
}

TEST_F(ClusterTest, ANodeThatExpectsAnotherClusterIsToldSo) {
  StartAll({.nodes = 3});
  const uint32_t other = world_->AddMachine();
  world_->change_options = [](ClusterOptions& options) { options.shape.group_bits = 9; };
  const Status refused = world_->Start(other);
  EXPECT_THAT(refused, HasCode(Code::kInvalid));
  EXPECT_NE(refused.message().find("made with 4"), std::string::npos);
}

// All speak what the oldest speaks. It refuses the rest, so that stripes would lack its shard.
TEST_F(ClusterTest, NodesAreUpgradedOneAfterAnotherAndOneGoesBack) {
  const auto old = [](ClusterOptions& options) { options.protocol_max = 1; };
  shards_ = {.nodes = 4, .data_shards = 2, .parity_shards = 2};
  world_ = std::make_unique<ClusterWorld>(shards_);
  world_->change_options = old;
  for (uint32_t n = 0; n < 4; ++n) ASSERT_THAT(world_->Start(n), IsOk());
  std::vector<Chain> chains;
  const auto all_speak = [&](uint16_t version) {
    ASSERT_TRUE(world_->AwaitReady(Seconds(60)));
    ASSERT_TRUE(world_->AwaitThat(
        [&] {
          for (uint32_t n = 0; n < 4; ++n) {
            if (world_->machine(n).member->view().protocol != version) return false;
          }
          return true;
        },
        Seconds(60)));
    chains.push_back(MakeChain(*world_, 4));
    ASSERT_THAT(PutAt(static_cast<uint32_t>(chains.size() % 4), chains.back()), IsOk());
    for (uint32_t n = 0; n < 4; ++n) {
      for (const Chain& chain : chains) EXPECT_THAT(GetAt(n, chain), IsOk());
      EXPECT_EQ(world_->machine(n).node->stats().stripes_degraded, 0u);
    }
  };
  const auto restart = [&](uint32_t n, std::function<void(ClusterOptions&)> change) {
    world_->Stop(n);
    world_->change_options = std::move(change);
    ASSERT_THAT(world_->Start(n), IsOk());
  };
  all_speak(1);
  for (uint32_t n = 0; n < 4; ++n) {
    restart(n, {});
    all_speak(n < 3 ? 1 : 2);
  }
  restart(2, old);
  all_speak(1);
}

// An outage of the control store stops changes only.
TEST_F(ClusterTest, WithoutTheControlStoreBlocksArePutAndGot) {
  StartAll({.nodes = 4});
  const Chain before = MakeChain(*world_, 4);
  ASSERT_THAT(PutAt(0, before), IsOk());
  const NamespaceId space = AttachAt(1);
  EXPECT_EQ(space, AttachAt(2));
  world_->RunFor(Seconds(3));  // The others have heard of it.
  world_->control().GoDown();
  world_->RunFor(Seconds(20));
  for (uint32_t n = 0; n < 4; ++n) {
    const Chain chain = MakeChain(*world_, 4);
    EXPECT_THAT(PutAt(n, chain), IsOk());
    EXPECT_THAT(GetAt((n + 1) % 4, chain), IsOk());
  }
  EXPECT_THAT(GetAt(3, before), IsOk());
  world_->control().ComeBack(sim::SimControl::Leases::kRunOut);
  world_->RunFor(Seconds(20));
  ASSERT_TRUE(world_->AwaitReady(Seconds(60)));
  EXPECT_THAT(GetAt(2, before), IsOk());
}

// Also of a node that has been forgotten since: when it comes back it takes part again.
TEST_F(ClusterTest, TheDrainOfAForgottenNodeIsTakenBack) {
  StartAll({.nodes = 5, .data_shards = 2, .parity_shards = 1, .lost_after = Seconds(10)});
  const NodeId gone = world_->machine(2).id;
  ClusterAdmin& admin = world_->machine(0).member->admin();
  ASSERT_THAT(world_->Await(admin.DrainNode("node-2", Draining::kYes)), IsOk());
  world_->RunFor(Seconds(20));
  world_->Kill(2);
  ASSERT_TRUE(Becomes(1, gone, [](const ClusterTargetInfo& at) { return at.id == kNoTarget; }));
  ASSERT_TRUE(world_->AwaitThat([&] { return !Knows(0, gone) && !Knows(1, gone); }, Seconds(300)));
  EXPECT_THAT(world_->Await(admin.DrainNode("node-2", Draining::kYes)), HasCode(Code::kNotFound));
  EXPECT_THAT(world_->Await(admin.DrainNode("node-2", Draining::kNo)), IsOk());
  EXPECT_THAT(world_->Await(admin.DrainNode("node-2", Draining::kNo)), HasCode(Code::kNotFound));
}

// What stayed away for so long that it is lost is rebuilt elsewhere, and then nobody misses it.
TEST_F(ClusterTest, ALostNodeIsRebuiltOnTheOthersAndForgotten) {
  StartAll({.nodes = 6, .data_shards = 2, .parity_shards = 2, .lost_after = Seconds(20)});
  const std::vector<Chain> chains = PutTwelve();
  world_->Kill(5);
  EXPECT_TRUE(world_->AwaitThat(
      [&] { return world_->machine(0).member->view().targets.size() == 1 &&
                   world_->machine(0).member->view().targets[MemberState::kUp] == 5; },
      Seconds(300)));
  // So two more may die.
  world_->Kill(4);
  world_->Kill(3);
  for (const Chain& chain : chains) EXPECT_THAT(GetAt(0, chain), IsOk());
}

TEST_F(ClusterTest, ADrainedNodeIsEmptiedAndItsBlocksStay) {
  StartAll({.nodes = 6});
  const std::vector<Chain> chains = PutTwelve();
  const NodeId leaving = world_->machine(2).id;
  ASSERT_THAT(world_->Await(SetDraining(world_->control().ClientOf(99, world_->clock()),
                                        ControlKeys("tests"), leaving, Draining::kYes,
                                        world_->clock().Now() + Seconds(5))),
              IsOk());
  const auto& target = world_->machine(2).node->targets().front();
  EXPECT_TRUE(world_->AwaitThat(
      [&] {
        return target->log().stats().shards == 0 &&
               world_->machine(3).member->view().groups_filling == 0;
      },
      Seconds(300)));
  EXPECT_EQ(world_->machine(2).member->view().groups_here, 0u);
  world_->Kill(2);
  world_->Kill(0);
  world_->Kill(1);
  for (const Chain& chain : chains) EXPECT_THAT(GetAt(3, chain), IsOk());
}

TEST_F(ClusterTest, ASlowNodeHoldsNoPartOfTheIndexUntilItIsFastAgain) {
  StartAll({.nodes = 6});
  const NodeId slow = world_->machine(5).id;
  for (uint32_t n = 0; n < 5; ++n) {
    const sim::LinkOptions far{.latency_min = Millis(25), .latency_max = Millis(26)};
    world_->network().SetLink(world_->machine(n).id, slow, far);
    world_->network().SetLink(slow, world_->machine(n).id, far);
  }
  const auto groups = [&] { return TargetAt(DescribeAt(0), slow).groups; };
  ASSERT_TRUE(Becomes(0, slow, [](const ClusterTargetInfo& at) { return at.groups > 0; }));
  std::vector<Chain> chains;
  for (uint32_t i = 0; i < 400 && groups() > 0; ++i) {
    chains.push_back(MakeChain(*world_, 4));
    EXPECT_THAT(PutAt(i % 3, chains.back()), IsOk());
    EXPECT_THAT(GetAt((i + 1) % 3, chains.back()), IsOk());
    world_->RunFor(Millis(200));
  }
  EXPECT_EQ(groups(), 0u);
  EXPECT_GT(world_->machine(0).member->view().targets_slow, 0u);
  // Nobody waits for it any more, once each has found out itself.
  for (uint32_t i = 0; i < 60; ++i) {
    EXPECT_THAT(PutAt(i % 3, MakeChain(*world_, 4)), IsOk());
    EXPECT_THAT(GetAt(i % 3, chains[i % chains.size()]), IsOk());
  }
  for (uint32_t i = 0; i < 30; ++i) {
    chains.push_back(MakeChain(*world_, 4));
    const Instant began = world_->clock().Now();
    EXPECT_THAT(PutAt(i % 3, chains.back()), IsOk());
    EXPECT_THAT(GetAt((i + 1) % 3, chains.back()), IsOk());
    EXPECT_LT(world_->clock().Now(), began + Millis(25)) << i;
  }
  // The next coordinator keeps to it, also when nobody asks anything for a while.
  world_->RunFor(Seconds(120));
  const uint32_t coordinator = Coordinating();
  EXPECT_EQ(world_->machine(coordinator).member->view().set_aside[0].node, "node-5");
  world_->Kill(coordinator);
  for (uint32_t i = 0; i < 40; ++i) {
    world_->RunFor(Seconds(1));
    EXPECT_EQ(TargetAt(DescribeAt((coordinator + 1) % 5), slow).groups, 0u) << i;
  }
  const auto set_aside = world_->machine(Coordinating()).member->view().set_aside;
  EXPECT_EQ(set_aside.size(), 1u);
  ASSERT_THAT(world_->Start(coordinator), IsOk());
  world_->network().SetLinks({});
  world_->RunFor(Seconds(700));
  EXPECT_GT(groups(), 0u);
  for (const Chain& chain : chains) EXPECT_THAT(GetAt(5, chain), IsOk());
}

TEST_F(ClusterTest, AnyNodeTellsOfTheClusterAndHasAnotherOneEmptied) {
  StartAll({.nodes = 6});
  const std::vector<Chain> chains = PutTwelve();
  const NodeId leaving = world_->machine(2).id;
  ClusterInfo seen = DescribeAt(4);
  EXPECT_EQ(seen.name, "tests");
  EXPECT_EQ(seen.self, world_->machine(4).id);
  EXPECT_NE(seen.coordinator, kNoNode);
  EXPECT_THAT(seen.control, IsOk());
  EXPECT_EQ(seen.nodes.size(), 6u);
  EXPECT_GT(TargetAt(seen, leaving).groups, 0u);
  EXPECT_GT(TargetAt(seen, leaving).free_bytes, 0u);
  ClusterAdmin& admin = world_->machine(4).member->admin();
  EXPECT_THAT(world_->Await(admin.DrainNode("node-77", Draining::kYes)), HasCode(Code::kNotFound));
  EXPECT_THAT(world_->Await(admin.DrainNode("node-77", Draining::kNo)), HasCode(Code::kNotFound));
  for (const Draining wanted : {Draining::kYes, Draining::kNo}) {
    EXPECT_THAT(world_->Await(admin.DrainNode("77", wanted)), HasCode(Code::kNotFound));
    EXPECT_THAT(world_->Await(admin.DrainTarget({1}, wanted)), HasCode(Code::kNotFound));
  }
  ASSERT_THAT(world_->Await(admin.DrainNode("node-2", Draining::kYes)), IsOk());
  ASSERT_TRUE(Becomes(1, leaving, [](const ClusterTargetInfo& target) { return target.vacated; }));
  EXPECT_EQ(TargetAt(DescribeAt(5), leaving).groups, 0u);
  for (const uint32_t n : {2u, 0u, 1u}) world_->Kill(n);
  for (const Chain& chain : chains) EXPECT_THAT(GetAt(3, chain), IsOk());
}

TEST_F(ClusterTest, ADrainIsTakenBackByIdAndATargetIsDrainedAlone) {
  StartAll({.nodes = 4});
  const NodeId node = world_->machine(1).id;
  const TargetId target = TargetAt(DescribeAt(0), node).id;
  ClusterAdmin& admin = world_->machine(0).member->admin();
  const auto draining = [](const ClusterTargetInfo& at) { return at.draining; };
  const auto stays = [](const ClusterTargetInfo& at) { return !at.draining && !at.vacated; };
  const std::string id = std::to_string(node.value);
  ASSERT_THAT(world_->Await(admin.DrainNode(id, Draining::kYes)), IsOk());
  EXPECT_TRUE(Becomes(3, node, draining));
  ASSERT_THAT(world_->Await(admin.DrainNode(id, Draining::kNo)), IsOk());
  EXPECT_TRUE(Becomes(3, node, stays));
  ASSERT_THAT(world_->Await(admin.DrainTarget(target, Draining::kYes)), IsOk());
  EXPECT_TRUE(Becomes(3, node, draining));
  EXPECT_FALSE(DescribeAt(3).nodes[1].draining);
  ASSERT_THAT(world_->Await(admin.DrainTarget(target, Draining::kNo)), IsOk());
  EXPECT_TRUE(Becomes(3, node, stays));
}

TEST_F(ClusterTest, WithoutTheControlStoreTheClusterIsSeenAndNotSteered) {
  StartAll({.nodes = 4});
  world_->control().GoDown();
  const ClusterInfo seen = DescribeAt(2);
  EXPECT_EQ(seen.nodes.size(), 4u);
  EXPECT_EQ(seen.coordinator, kNoNode);
  EXPECT_THAT(seen.control, HasCode(Code::kUnavailable));
  ClusterAdmin& admin = world_->machine(2).member->admin();
  EXPECT_THAT(world_->Await(admin.DrainNode("node-1", Draining::kYes)),
              HasCode(Code::kUnavailable));
  EXPECT_THAT(world_->Await(admin.DrainNode("node-77", Draining::kNo)),
              HasCode(Code::kUnavailable));
  world_->control().ComeBack(sim::SimControl::Leases::kRenewed);
}

}  // namespace
}  // namespace cairn::kv
