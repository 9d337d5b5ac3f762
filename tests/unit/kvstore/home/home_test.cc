// Many nodes, one store: homes, leases across nodes, take-over, and what stale nodes may not do.
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

#include "tests/unit/kvstore/home/home_chains.h"

namespace cairn::kv {
namespace {

using ::testing::Each;
using testing::HasCode;
using testing::IsOk;

class Homes : public ::testing::TestWithParam<uint32_t> {};

TEST_P(Homes, WhatAnyNodePutsAnyOtherGets) {
  World world({.nodes = GetParam()});
  std::vector<Chain> chains;
  for (uint32_t n = 1; n <= GetParam(); ++n) {
    chains.push_back(MakeChain(world, 10));  // Three runs.
    EXPECT_THAT(Put(world, n, chains.back()), Each(IsOk()));
  }
  for (uint32_t n = 1; n <= GetParam(); ++n) {
    for (const Chain& chain : chains) {
      EXPECT_EQ(Lookup(world, n, chain).blocks, 10u);
      for (const size_t block : {0u, 5u, 9u}) EXPECT_THAT(Get(world, n, chain, block), IsOk());
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Nodes, Homes, ::testing::Values(4, 12));

TEST(Homes, ALeaseTakenThroughOneNodeStopsEvictionByAnother) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
  const ChainHit hit = Lookup(world, 1, chain, {.duration = Seconds(50)});
  EXPECT_EQ(hit.blocks, 4u);
  ASSERT_NE(hit.lease.value, 0u);
  EXPECT_THAT(Evict(world, 4, chain), HasCode(Code::kConflict));
  world.RunFor(Seconds(40));
  const auto renewed =
      world.Await(world.node(1).store->Renew({hit.lease}, {.duration = Seconds(50)}));
  EXPECT_THAT(renewed, Each(IsOk()));
  world.RunFor(Seconds(40));
  EXPECT_THAT(Evict(world, 4, chain), HasCode(Code::kConflict));
  EXPECT_THAT(world.Await(world.node(1).store->Release({hit.lease}, {})), IsOk());
  EXPECT_THAT(Evict(world, 4, chain), IsOk());
  EXPECT_EQ(Lookup(world, 1, chain).miss, MissReason::kEvicted);
}

TEST(Homes, ALeaseEndsWithItsSessionAtEveryHome) {
  World world({});
  const Chain chain = MakeChain(world, 16);  // Four runs, of several homes.
  EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
  const SessionId session = world.node(1).store->OpenSession();
  const ChainHit hit =
      Lookup(world, 1, chain, {.session = session, .duration = Seconds(50)});
  ASSERT_NE(hit.lease.value, 0u);
  const auto active = [&] {
    uint64_t leases = 0;
    for (uint32_t n = 1; n <= 4; ++n) {
      leases += world.node(n).home->leases().Stats(world.clock().Now()).active;
    }
    return leases;
  };
  EXPECT_GT(active(), 1u);
  world.node(1).store->EndSession(session);
  world.RunFor(Seconds(1));
  EXPECT_EQ(active(), 0u);
}

TEST(Homes, WhatOneNodeEvictsIsACleanMissForAnotherThatKnewIt) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
  EXPECT_THAT(Get(world, 1, chain, 0), IsOk());  // Node 1 knows the run now.
  EXPECT_THAT(Evict(world, 4, chain), IsOk());
  EXPECT_THAT(Get(world, 1, chain, 0), HasCode(Code::kNotFound));
  EXPECT_EQ(Lookup(world, 1, chain).miss, MissReason::kEvicted);
}

TEST(Homes, OfTwoNodesThatPutTheSameBlocksTheFirstWins) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  auto first = world.node(1).store->Put(PutOf(world, chain));
  auto second = world.node(2).store->Put(PutOf(world, chain));
  auto third = world.node(3).store->Put(PutOf(world, chain));
  EXPECT_THAT(world.Await(std::move(first)), Each(IsOk()));
  EXPECT_THAT(world.Await(std::move(second)), Each(IsOk()));
  EXPECT_THAT(world.Await(std::move(third)), Each(IsOk()));
  EXPECT_EQ(StripesOf(world, chain).size(), 1u);
  size_t shards = 0;
  for (const FakeTarget* target : world.all_targets()) shards += target->shards.size();
  EXPECT_EQ(shards, 3u);  // Of one stripe of one data shard: the losers' are dropped.
  for (uint32_t n = 1; n <= 4; ++n) EXPECT_THAT(Get(world, n, chain, 3), IsOk());
}

// The home files the stripe, and its answer is lost: the put fails, and the stripe is there.
TEST(Homes, WhatAnUnansweredPutLeftFiledIsWhole) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  auto put = world.node(2).store->Put(PutOf(world, chain));
  while (StripesOf(world, chain).empty()) world.RunFor(Micros(5));
  world.links().cuts.insert({{3}, {2}});
  for (const Status& outcome : world.Await(std::move(put))) EXPECT_FALSE(outcome.ok());
  EXPECT_FALSE(StripesOf(world, chain).empty());
  world.links().cuts.clear();
  world.RunFor(Seconds(10));
  EXPECT_THAT(Get(world, 4, chain, 0), IsOk());
  for (const uint32_t n : {1u, 2u}) {
    EXPECT_THAT(Put(world, n, chain), Each(IsOk()));
    for (size_t block = 0; block < 4; ++block) EXPECT_THAT(Get(world, 4, chain, block), IsOk());
  }
}

// Its home cannot reach the other replicas: what it has filed alone, others may have found.
TEST(Homes, WhatAHomeFiledAloneKeepsItsShards) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  for (const uint32_t other : {1u, 4u}) world.links().cuts.insert({{3}, {other}});
  auto first = world.node(2).store->Put(PutOf(world, chain));
  while (StripesOf(world, chain).empty()) world.RunFor(Micros(5));
  auto second = world.node(2).store->Put(PutOf(world, chain));
  for (const Status& outcome : world.Await(std::move(first))) EXPECT_FALSE(outcome.ok());
  (void)world.Await(std::move(second));
  world.links().cuts.clear();
  world.RunFor(Seconds(10));
  for (const StripeId& stripe : StripesOf(world, chain)) {
    size_t shards = 0;
    for (FakeTarget* target : world.all_targets()) shards += target->shards.count(stripe);
    EXPECT_EQ(shards, 3u);
  }
  EXPECT_THAT(Put(world, 1, chain), Each(IsOk()));
  for (size_t block = 0; block < 4; ++block) EXPECT_THAT(Get(world, 4, chain, block), IsOk());
}

// A replica that was away brings back the record of a stripe whose shards are gone.
TEST(Homes, APutOfWhatIsFiledButGoneStoresIt) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 3, chain), Each(IsOk()));
  const StripeId stripe = *StripesOf(world, chain).begin();
  const TargetId replica = world.map().GroupOf(GroupHashOf(stripe)).targets[1];
  const IndexedStripe filed = world.Find(replica).filed.at(stripe);
  EXPECT_THAT(Evict(world, 4, chain), IsOk());
  world.Kill(3);
  world.Find(replica).filed.emplace(stripe, filed);
  world.TakeOver(3);
  world.Restart(3);
  world.Fill();
  ASSERT_EQ(Lookup(world, 1, chain).blocks, 4u);  // By what is filed.
  for (const uint32_t n : {1u, world.HomeOf(RunId{chain.ids[0]}).value}) {
    EXPECT_THAT(Put(world, n, chain), Each(IsOk()));
    for (size_t block = 0; block < 4; ++block) EXPECT_THAT(Get(world, 2, chain, block), IsOk());
  }
}

TEST(Homes, WhatIsLostForGoodIsNotShownAgainOnceARead) {
  World world({});
  for (const size_t lost_block : {0u, 3u}) {
    const Chain chain = ChainAt(world, 3);
    for (size_t block = 0; block < 4; ++block) {  // A stripe each.
      ChainPut put{.space = world.space, .chain = chain.ids, .first = static_cast<uint32_t>(block)};
      put.blocks.push_back({chain.ids[block], chain.bytes[block].span()});
      EXPECT_THAT(world.Await(world.node(2).store->Put(std::move(put))), Each(IsOk()));
    }
    ASSERT_EQ(StripesOf(world, chain).size(), 4u);
    const StripeId stripe = StripeOf(world, chain.ids[lost_block]);
    size_t lost = 0;
    for (FakeTarget* target : world.all_targets()) lost += target->shards.erase(stripe);
    ASSERT_EQ(lost, 3u);
    EXPECT_EQ(Lookup(world, 1, chain).blocks, 4u);
    for (const uint32_t n : {3u, 1u}) EXPECT_FALSE(Get(world, n, chain, lost_block).ok());
    EXPECT_EQ(Lookup(world, 4, chain).blocks, lost_block);
    EXPECT_EQ(StripesOf(world, chain).size(), 3u);
    EXPECT_THAT(Get(world, 1, chain, 1), IsOk());
  }
}

TEST(Homes, WhatTargetsThatAreAwayMayHaveStaysFiled) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
  const StripeId stripe = *StripesOf(world, chain).begin();
  std::vector<FakeTarget*> holders;
  for (FakeTarget* target : world.all_targets()) {
    if (target->shards.contains(stripe)) holders.push_back(target);
  }
  ASSERT_EQ(holders.size(), 3u);
  holders[0]->shards.erase(stripe);  // One is lost, and the others are away.
  holders[1]->down = holders[2]->down = true;
  EXPECT_FALSE(Get(world, 1, chain, 0).ok());
  holders[1]->down = holders[2]->down = false;
  world.RunFor(Seconds(10));
  EXPECT_THAT(Get(world, 1, chain, 0), IsOk());
}

TEST(Homes, HitsOfOtherNodesReachTheHome) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 3, chain), Each(IsOk()));
  const StripeId stripe = *StripesOf(world, chain).begin();
  const auto last_access = [&] {
    return world.node(3).home->index().StateOf(stripe)->last_access;
  };
  const uint32_t before = last_access();
  world.RunFor(Seconds(100));
  EXPECT_EQ(Lookup(world, 1, chain).blocks, 4u);
  world.Await(world.node(1).index->SendUse());
  EXPECT_GE(last_access(), before + 100);
}

// --- The home dies ---

TEST(Homes, WithoutItsHomeARunIsReadButNotLeased) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
  world.Kill(3);
  const ChainHit hit = Lookup(world, 1, chain, {.duration = Seconds(5)});
  EXPECT_EQ(hit.blocks, 4u);
  EXPECT_EQ(hit.lease.value, 0u);
  for (size_t block = 0; block < 4; ++block) EXPECT_THAT(Get(world, 2, chain, block), IsOk());
}

TEST(Homes, AHitDoesNotWaitForAHomeThatIsLate) {
  World world({});
  const auto has_shard_at = [&](const Chain& chain, uint32_t n) {
    const StripeId stripe = *StripesOf(world, chain).begin();
    for (FakeTarget* target : world.all_targets()) {
      if (NodeOf(target->id()) == NodeId{n} && target->shards.contains(stripe)) return true;
    }
    return false;
  };
  Chain chain = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
  while (has_shard_at(chain, 3)) {
    chain = ChainAt(world, 3);
    EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
  }
  world.links().cuts.insert({{3}, {1}});  // Its answer would be missed after 200 ms.
  const Instant began = world.clock().Now();
  EXPECT_THAT(Get(world, 1, chain, 0), IsOk());
  EXPECT_LT(world.clock().Now(), began + Millis(100));
}

TEST(Homes, AHitDoesNotWaitForAHomeThatIsSlow) {
  World world({});
  world.links().far.insert({3});
  const auto look_up = [&](uint32_t home) {
    const Chain chain = ChainAt(world, home);
    EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
    const Instant began = world.clock().Now();
    EXPECT_EQ(Lookup(world, 1, chain).blocks, 4u);
    return world.clock().Now() - began;
  };
  for (int i = 0; i < 40; ++i) {
    for (const uint32_t home : {2u, 3u, 4u}) look_up(home);
  }
  for (int i = 0; i < 10; ++i) EXPECT_LT(look_up(3), Millis(15)) << i;
  world.RunFor(Seconds(1));  // The home's answers come yet.
}

TEST(Homes, ANewHomeLeasesAndEvictsOnlyAfterTheGrace) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
  ASSERT_NE(Lookup(world, 1, chain, {.duration = Seconds(90)}).lease.value, 0u);
  world.Kill(3);
  world.TakeOver(3);
  world.Fill();
  EXPECT_EQ(Lookup(world, 1, chain, {.duration = Seconds(5)}).lease.value, 0u);
  world.RunFor(Seconds(3));
  const ChainHit hit = Lookup(world, 1, chain, {.duration = Seconds(5)});
  EXPECT_EQ(hit.blocks, 4u);
  EXPECT_NE(hit.lease.value, 0u);
  world.RunFor(Seconds(80));  // The old home's lease still holds.
  EXPECT_THAT(Evict(world, 2, chain), HasCode(Code::kConflict));
  world.RunFor(Seconds(20));
  // The dead node does not drop its shards.
  EXPECT_THAT(Evict(world, 2, chain), HasCode(Code::kUnavailable));
  EXPECT_EQ(Lookup(world, 1, chain).miss, MissReason::kEvicted);
}

TEST(Homes, ANewHomeFindsWhatItsOwnReplicaLacks) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
  const StripeId stripe = *StripesOf(world, chain).begin();
  world.Kill(3);
  world.TakeOver(3);
  const NodeId home = world.HomeOf(RunId{chain.ids[0]});
  world.Find(world.map().GroupOf(GroupHashOf(stripe)).targets[0]).filed.erase(stripe);
  EXPECT_EQ(Lookup(world, 1, chain).blocks, 4u);
  const auto reports = world.Await(world.node(1).index->StatesOf({stripe}));
  EXPECT_EQ(reports[0].kind, StripeReport::Kind::kUnknown);  // Nobody reclaims it.
  world.Fill();
  const auto filled = world.Await(world.node(home.value).index->StatesOf({stripe}));
  EXPECT_EQ(filled[0].kind, StripeReport::Kind::kFiled);
}

TEST(Homes, ThePlaceOfADeadHomeIsUnknownNotAbsent) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
  const StripeId stripe = *StripesOf(world, chain).begin();
  world.Kill(3);
  const auto reports = world.Await(world.node(1).index->StatesOf({stripe}));
  EXPECT_EQ(reports[0].kind, StripeReport::Kind::kUnknown);
}

TEST(Homes, ReplicasRefuseTheHomeOfAnOlderEpoch) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  world.node(3).map->frozen = true;  // It has not heard, but reaches everybody.
  world.TakeOver(3);
  for (const Status& put : Put(world, 3, chain)) EXPECT_FALSE(put.ok());
  EXPECT_THAT(Put(world, 1, chain), Each(IsOk()));
  EXPECT_EQ(StripesOf(world, chain).size(), 1u);
  EXPECT_FALSE(Evict(world, 3, chain).ok());
  EXPECT_THAT(Get(world, 2, chain, 0), IsOk());
}

TEST(Homes, AskersOfAnOldMapAreToldAndAskAgain) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
  world.node(1).map->frozen = true;
  world.TakeOver(3);
  world.node(1).map->frozen = false;
  EXPECT_LT(world.node(1).map->epoch(), world.map().epoch);
  EXPECT_EQ(Lookup(world, 1, chain).blocks, 4u);
  EXPECT_EQ(world.node(1).map->epoch(), world.map().epoch);
}

TEST(Homes, ANodeThatIsNotTheHomeRefuses) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
  const home::LoadRequest request{.key = {world.space, RunId{chain.ids[0]}}};
  const home::RequestHead head{.verb = home::Verb::kLoad, .epoch = 1};
  for (const uint32_t n : {1u, 3u}) {
    const Bytes answer = world.Await(
        world.node(n).service->Answer(NodeId{2}, home::EncodeRequest(head, request)));
    uint64_t epoch = 0;
    const auto loaded = home::ParseAnswer<home::LoadAnswer>(answer.span(), epoch);
    EXPECT_EQ(loaded.code(), n == 3 ? Code::kOk : Code::kUnavailable);
  }
}

// --- Homes that come and go ---

// The chain's home moves on until it is node `n`, or is not.
void MoveHome(World& world, const Chain& chain, uint32_t n, bool to) {
  const auto home = [&] { return world.HomeOf(RunId{chain.ids[0]}); };
  while ((home() == NodeId{n}) != to) world.TakeOver(home().value);
  world.Fill();
}

TEST(Homes, WhoBecomesHomeAgainForgetsWhatItKnew) {
  World world({});
  const Chain whole = ChainAt(world, 3);
  Chain half;
  half.ids = {whole.ids[0], whole.ids[1]};
  for (size_t i = 0; i < 2; ++i) half.bytes.push_back(Bytes::CopyOf(whole.bytes[i].span()));
  const Chain other = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 2, half), Each(IsOk()));
  EXPECT_THAT(Put(world, 2, other), Each(IsOk()));
  EXPECT_EQ(Lookup(world, 3, whole).blocks, 2u);
  EXPECT_EQ(Lookup(world, 3, other).blocks, 4u);
  MoveHome(world, whole, 3, false);
  MoveHome(world, other, 3, false);
  EXPECT_THAT(Put(world, 1, whole), Each(IsOk()));
  EXPECT_THAT(Delete(world, 1, other), IsOk());
  MoveHome(world, whole, 3, true);
  MoveHome(world, other, 3, true);
  EXPECT_EQ(Lookup(world, 3, whole).blocks, 4u);
  EXPECT_EQ(Lookup(world, 3, other).blocks, 0u);
}

size_t ShardsOf(World& world, StripeId stripe) {
  size_t shards = 0;
  for (const FakeTarget* target : world.all_targets()) shards += target->shards.count(stripe);
  return shards;
}

TEST(Homes, WhatIsDeletedLeavesNoShards) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
  const StripeId stripe = *StripesOf(world, chain).begin();
  MoveHome(world, chain, 3, false);  // To one that has never read the run.
  EXPECT_GT(ShardsOf(world, stripe), 0u);
  EXPECT_THAT(Delete(world, 2, chain), IsOk());
  EXPECT_EQ(ShardsOf(world, stripe), 0u);
}

TEST(Homes, WhoIsNoHomeAnyMoreDropsNoShards) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 3, chain), Each(IsOk()));
  world.node(3).map->frozen = true;
  MoveHome(world, chain, 3, false);
  world.RunFor(Seconds(200));  // It evicts again.
  EXPECT_FALSE(Evict(world, 3, chain).ok());
  for (size_t block = 0; block < 4; ++block) EXPECT_THAT(Get(world, 2, chain, block), IsOk());
}

// As long as a new home keeps everything for its sake, and no longer.
TEST(Homes, ALeaseLastsAMinuteAtMost) {
  World world({.tenure = {.node_lease = Seconds(2)}});
  const Chain chain = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
  world.RunFor(Seconds(65));  // Nothing else holds it.
  for (const uint32_t asker : {1U, 3U}) {  // From afar, and at the home itself.
    const ChainHit hit = Lookup(world, asker, chain, {.duration = Seconds(600)});
    EXPECT_NE(hit.lease.value, 0u);
    EXPECT_EQ(hit.lease_for, Seconds(60));
    const auto renewed = world.Await(
        world.node(asker).store->Renew({hit.lease}, {.duration = Seconds(600)}));
    EXPECT_THAT(renewed[0], IsOk());
  }
  EXPECT_FALSE(Evict(world, 3, chain).ok());
  world.RunFor(Seconds(62));
  EXPECT_THAT(Evict(world, 3, chain), IsOk());
}

TEST(Homes, ANewHomeEvictsAfterAMinute) {
  World world({.tenure = {.node_lease = Seconds(2)}});
  const Chain chain = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
  world.RunFor(Seconds(62));
  MoveHome(world, chain, 3, false);
  const uint32_t home = world.HomeOf(RunId{chain.ids[0]}).value;
  world.RunFor(Seconds(57));
  EXPECT_FALSE(Evict(world, home, chain).ok());
  world.RunFor(Seconds(4));
  EXPECT_THAT(Evict(world, home, chain), IsOk());
}

TEST(Homes, AFormerHomeRenewsNoLease) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
  world.RunFor(Seconds(5));
  const LeaseId lease = Lookup(world, 1, chain, {.duration = Seconds(50)}).lease;
  ASSERT_NE(lease.value, 0u);
  const auto renew = [&] {
    return world.Await(world.node(1).store->Renew({lease}, {.duration = Seconds(50)}))[0];
  };
  EXPECT_THAT(renew(), IsOk());
  MoveHome(world, chain, 3, false);
  EXPECT_THAT(renew(), HasCode(Code::kNotFound));
}

TEST(Homes, WhatOnlyAReplicaThatIsFilledHasIsWithdrawnThere) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  const Chain gone = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
  EXPECT_THAT(Put(world, 2, gone), Each(IsOk()));
  const StripeId kept = *StripesOf(world, chain).begin();
  const StripeId stale = *StripesOf(world, gone).begin();
  HomeIndex& home = world.node(3).home->index();
  const auto disown = [&](StripeId stripe) {
    const TargetId other = world.map().GroupOf(GroupHashOf(stripe)).targets[1];
    const IndexedStripe record = world.Find(other).filed.at(stripe);
    if (stripe == stale) {
      EXPECT_THAT(Delete(world, 2, gone), IsOk());
      world.Find(other).filed.emplace(stripe, record);
    }
    EXPECT_THAT(world.Await(home.Disown(*world.node(3).set->Find(other), stripe)), IsOk());
    return world.Find(other).filed.contains(stripe);
  };
  EXPECT_TRUE(disown(kept));
  EXPECT_FALSE(disown(stale));
}

// A repair has read it, and before it files what it has rebuilt the stripe is removed; the home
// does not know all that is filed just now.
TEST(Homes, WhatWasRemovedIsNotFiledAgainByARepair) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
  const StripeId stripe = *StripesOf(world, chain).begin();
  const TargetId own = world.map().GroupOf(GroupHashOf(stripe)).targets[0];
  IndexedStripe rebuilt = world.Find(own).filed.at(stripe);
  ++rebuilt.manifest.generation;
  EXPECT_THAT(Delete(world, 2, chain), IsOk());
  HomeIndex& home = world.node(3).home->index();
  home.Unsettle();
  EXPECT_THAT(world.Await(home.Republish(std::move(rebuilt))), HasCode(Code::kNotFound));
  EXPECT_EQ(StripesOf(world, chain).size(), 0u);
}

// Its home, node 3, files the chain's stripe, and neither the replicas' answers arrive nor is it
// withdrawn: a failed put, which the home shows once all replicas have it.
void PutUnanswered(World& world, const Chain& chain) {
  EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
  const StripeId stripe = *StripesOf(world, chain).begin();
  const auto& group = world.map().GroupOf(GroupHashOf(stripe)).targets;
  IndexedStripe filed = world.Find(group[0]).filed.at(stripe);
  std::map<FakeTarget*, FakeTarget::Shard> shards;
  for (FakeTarget* target : world.all_targets()) {
    const auto found = target->shards.find(stripe);
    if (found != target->shards.end()) shards.emplace(target, std::move(found->second));
  }
  EXPECT_THAT(Delete(world, 2, chain), IsOk());
  for (auto& [target, shard] : shards) target->shards.insert_or_assign(stripe, std::move(shard));
  for (const uint32_t other : {1u, 2u, 4u}) world.links().cuts.insert({{other}, {3}});
  for (FakeTarget* target : world.all_targets()) target->refuses_withdrawals = true;
  const auto put = world.Await(world.node(3).home->index().Publish(std::move(filed), {}));
  EXPECT_FALSE(put.ok());
  world.links().cuts.clear();
  for (FakeTarget* target : world.all_targets()) target->refuses_withdrawals = false;
  world.RunFor(Seconds(10));
  ASSERT_EQ(StripesOf(world, chain).size(), 1u);
  EXPECT_EQ(Lookup(world, 2, chain).blocks, 0u);
}

TEST(Homes, WhatIsNotShownYetIsDeletedAsWell) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  PutUnanswered(world, chain);
  EXPECT_THAT(Delete(world, 2, chain), IsOk());
  HomeIndex& home = world.node(3).home->index();
  home.Show(home.Hidden());
  EXPECT_EQ(Lookup(world, 2, chain).blocks, 0u);
  EXPECT_EQ(StripesOf(world, chain).size(), 0u);
}

TEST(Homes, WhatAnotherHomeHasShownIsNotHiddenAgain) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  PutUnanswered(world, chain);
  MoveHome(world, chain, 3, false);
  EXPECT_THAT(Put(world, 1, chain), Each(IsOk()));  // They are there.
  EXPECT_EQ(StripesOf(world, chain).size(), 1u);
  MoveHome(world, chain, 3, true);
  EXPECT_EQ(Lookup(world, 2, chain).blocks, 4u);
  for (size_t block = 0; block < 4; ++block) EXPECT_THAT(Get(world, 4, chain, block), IsOk());
}

// All replicas have filed it, and before it hears so the run has another home: which may have read
// the run before, and does not show it.
TEST(Homes, WhatEndsInAnotherTenureIsNotSaidToBeDone) {
  World world({});
  const Chain chain = ChainAt(world, 3);
  EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
  const StripeId stripe = *StripesOf(world, chain).begin();
  const auto group = world.map().GroupOf(GroupHashOf(stripe)).targets;
  const IndexedStripe filed = world.Find(group[0]).filed.at(stripe);
  const StripeName name{world.space, RunId{chain.ids[0]}, stripe};
  HomeIndex& home = world.node(3).home->index();
  const auto others_have_it = [&](bool wanted) {
    return world.Find(group[1]).filed.contains(stripe) == wanted &&
           world.Find(group[2]).filed.contains(stripe) == wanted;
  };
  auto removal = home.Remove(name, MissReason::kAbsent);
  while (!others_have_it(false)) world.RunFor(Micros(1));
  world.TakeOver(3);
  EXPECT_THAT(world.Await(std::move(removal)), HasCode(Code::kUnavailable));
  MoveHome(world, chain, 3, true);
  auto publication = home.Publish(filed, Durability::kProcess);
  while (!others_have_it(true)) world.RunFor(Micros(1));
  world.TakeOver(3);
  EXPECT_THAT(world.Await(std::move(publication)), HasCode(Code::kUnavailable));
}

// A home takes over what another replica has, and somebody deletes it at that moment.
TEST(Homes, WhatIsDeletedWhileItIsTakenOverStaysDeleted) {
  size_t overtaken = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    World world({.seed = seed});
    const auto head_start = static_cast<int64_t>(seed * 7 % 1500);
    const Chain chain = ChainAt(world, 3);
    EXPECT_THAT(Put(world, 2, chain), Each(IsOk()));
    const StripeId stripe = *StripesOf(world, chain).begin();
    const std::vector<TargetId>& group = world.map().GroupOf(GroupHashOf(stripe)).targets;
    world.Find(group[0]).filed.erase(stripe);
    TargetPort* replica = world.node(3).set->Find(group[1]);
    auto deletion = world.node(1).store->Delete(world.space, chain.ids, 0);
    world.RunFor(Micros(head_start));
    const bool is_there = world.Find(group[1]).filed.contains(stripe);
    uint64_t adopted = 0;
    (void)world.Await(world.node(3).home->index().Adopt(*replica, stripe, adopted));
    EXPECT_THAT(world.Await(std::move(deletion)), IsOk());
    overtaken += is_there && adopted == 0;
    EXPECT_EQ(StripesOf(world, chain).size(), 0u) << seed;
  }
  EXPECT_GT(overtaken, 0u);
}

}  // namespace
}  // namespace cairn::kv
