// What the home of a run answers for its stripes.
#include "kvstore/client/home_index.h"

#include <gtest/gtest.h>

#include "kvstore/types/group_hash.h"
#include "tests/unit/kvstore/client/store_fixture.h"

namespace cairn::kv {
namespace {

using ::testing::Each;
using testing::HasCode;
using testing::IsOk;
using Kind = StripeReport::Kind;

StripeReport ReportOn(Store& store, StripeId stripe) {
  return store.Await(store.store().index().StatesOf({stripe}))[0];
}

// The stripes that were put, on whatever target they are filed.
std::vector<StripeId> Filed(Store& store) {
  std::set<StripeId> stripes;
  for (size_t i = 0; i < store.target_count(); ++i) {
    for (const auto& [id, stripe] : store.target(i).filed) stripes.insert(id);
  }
  return {stripes.begin(), stripes.end()};
}

TEST(HomeIndex, ReportsWhatIsFiledAndWhatIsHeld) {
  Store store;
  const Chain chain = store.MakeChain({10'000, 20'000});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  const StripeId stripe = Filed(store)[0];
  EXPECT_EQ(ReportOn(store, stripe).kind, Kind::kFiled);
  EXPECT_FALSE(ReportOn(store, stripe).held);
  EXPECT_EQ(ReportOn(store, stripe).state.payload_bytes, 12'288u + 20'480u);
  const ChainHit hit =
      store.Await(store.store().Lookup(store.space, chain.ids, {.duration = Seconds(10)})).value();
  EXPECT_EQ(hit.blocks, 2u);
  EXPECT_TRUE(ReportOn(store, stripe).held);
  EXPECT_THAT(store.Await(store.store().Release({hit.lease}, {})), IsOk());
  EXPECT_FALSE(ReportOn(store, stripe).held);
  EXPECT_EQ(ReportOn(store, StripeId{{1, 2}}).kind, Kind::kAbsent);
}

TEST(HomeIndex, TheNameOfAStripeIsItsRuns) {
  Store store;
  const Chain chain = store.MakeChain({10'000});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  const StripeId stripe = Filed(store)[0];
  const auto name = store.Await(store.store().index().NameOf(stripe));
  EXPECT_EQ(name.value(), (StripeName{store.space, RunId{chain.ids[0]}, stripe}));
  EXPECT_EQ(GroupHashOf(stripe), GroupHashOf(store.space, RunId{chain.ids[0]}));
  const auto unknown = store.Await(store.store().index().NameOf(StripeId{{1, 2}}));
  EXPECT_THAT(unknown, HasCode(Code::kNotFound));
}

TEST(HomeIndex, LeasesOnlyWhatIsThere) {
  Store store;
  const Chain chain = store.MakeChain({10'000});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  const StripeId stripe = Filed(store)[0];
  const StripeId unknown{{1, 2}};
  const LeaseGrant grant = store.Await(store.store().index().Grant(
      {{.id = stripe, .bytes = 1}, {.id = unknown, .bytes = 1}}, {.duration = Seconds(5)}));
  EXPECT_NE(grant.lease.value, 0u);
  EXPECT_EQ(grant.left, Seconds(5));
  EXPECT_EQ(grant.gone, std::vector<StripeId>{unknown});
}

// A lookup that finds a run in the cache, and asks for a lease on what its replicas no longer have.
TEST(HomeIndex, ALookupWithALeaseEndsWhereItsHomeHasNothing) {
  Store store;
  const Chain chain = store.MakeChain(std::vector<uint32_t>(16, 10'000));  // Two runs.
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  EXPECT_EQ(store.Lookup(chain).blocks, 16u);
  for (size_t i = 0; i < store.target_count(); ++i) {
    std::erase_if(store.target(i).filed, [&](const auto& filed) {
      return filed.second.manifest.run == RunId{chain.ids[8]};
    });
  }
  EXPECT_EQ(store.Lookup(chain).blocks, 16u);
  const ChainHit hit =
      store.Await(store.store().Lookup(store.space, chain.ids, {.duration = Seconds(5)})).value();
  EXPECT_EQ(hit.blocks, 8u);
  EXPECT_EQ(hit.miss, MissReason::kAbsent);
  EXPECT_NE(hit.lease.value, 0u);
}

struct TenureOfTests final : HomeTenure {
  Tenure Of(uint16_t) const override { return {.whole = whole}; }
  bool whole = true;
};

// With three replicas, and nothing filed.
struct HomeOfThree {
  Loop loop;
  FakeClock clock;
  Random random{1};
  NullLog log;
  FakeTarget targets[3] = {FakeTarget{1}, FakeTarget{2}, FakeTarget{3}};
  TargetSet set{clock, {&targets[0], &targets[1], &targets[2]}};
  FakePlacement placement{set};
  TenureOfTests tenure;
  Home home{{.loop = loop, .clock = clock, .random = random, .log = log, .targets = set,
             .placement = placement, .tenure = tenure}, {}};
};

// The third does not answer: the other two lack what it may have.
TEST(HomeIndex, ReplicasThatWereNotComparedProveNoAbsence) {
  HomeOfThree of;
  const RunKey key{NamespaceId{{1, 1}}, RunId{{2, 2}}};
  const std::vector<BlockId> wanted{BlockId{{3, 3}}};
  const auto third = [&](RunId run) -> FakeTarget& {
    return of.targets[of.placement.ReplicaOrder(key.space, run)[2].value - 1];
  };
  third(key.run).down = true;
  const auto complete = [&](RunId run) {
    Task<Result<KnownRunPtr>> load = of.home.index().Load({key.space, run}, wanted);
    of.loop.RunReady();
    return load.Take().value()->complete;
  };
  EXPECT_TRUE(complete(key.run));
  of.tenure.whole = false;
  of.home.index().Unsettle();
  for (FakeTarget& target : of.targets) target.down = false;
  EXPECT_TRUE(complete(RunId{{2, 3}}));  // All have answered.
  third(RunId{{2, 4}}).down = true;
  EXPECT_FALSE(complete(RunId{{2, 4}}));
}

TEST(HomeIndex, WithTwoReplicasAwayTheThirdProvesNoAbsence) {
  HomeOfThree of;
  of.tenure.whole = false;
  of.home.index().Unsettle();
  const NamespaceId space{{1, 1}};
  const auto complete = [&](uint64_t run, std::set<TargetId> away) {
    of.placement.away = std::move(away);
    const std::vector<BlockId> wanted{BlockId{{3, 3}}};
    Task<Result<KnownRunPtr>> load = of.home.index().Load({space, RunId{{2, run}}}, wanted);
    of.loop.RunReady();
    return load.Take().value()->complete;
  };
  EXPECT_TRUE(complete(1, {}));
  EXPECT_TRUE(complete(2, {TargetId{2}}));  // What was published two have.
  EXPECT_FALSE(complete(3, {TargetId{2}, TargetId{3}}));
}

TEST(HomeIndex, APutWhoseRecordOnlyReplicasTakeThatAreBeingFilledFails) {
  HomeOfThree of;
  const auto publish = [&](uint64_t run, std::set<TargetId> away, std::set<TargetId> filling) {
    of.placement.away = std::move(away);
    of.placement.filling = std::move(filling);
    IndexedStripe stripe{.manifest = {}, .expires_at = UnixMillis{INT64_MAX / 2}};
    stripe.manifest.space = NamespaceId{{1, 1}};
    stripe.manifest.run = RunId{{2, run}};
    stripe.manifest.stripe = StripeId{{7, run}};
    stripe.manifest.blocks.push_back({.id = BlockId{{2, run}}});
    Task<Status> filed = of.home.index().Publish(std::move(stripe), Durability::kProcess);
    of.loop.RunReady();
    return filed.Take();
  };
  const TargetId one{1}, two{2}, three{3};
  EXPECT_THAT(publish(1, {two, three}, {}), IsOk());  // One that has all is better than nothing.
  EXPECT_THAT(publish(2, {two, three}, {one}), HasCode(Code::kUnavailable));
  EXPECT_FALSE(of.targets[0].filed.contains(StripeId{{7, 2}}));
  EXPECT_THAT(publish(3, {three}, {one}), IsOk());
  EXPECT_THAT(publish(4, {three}, {one, two}), HasCode(Code::kUnavailable));
}

TEST(HomeIndex, WhatGoesAstrayDuringAComparisonIsNotSettledByIt) {
  HomeOfThree of;
  HomeIndex& index = of.home.index();
  index.Unsettle();
  uint64_t unsettlings = index.unsettlings();
  EXPECT_FALSE(index.settled());  // Until it has ended.
  index.Unsettle();
  index.Settle(unsettlings);
  EXPECT_FALSE(index.settled());
  unsettlings = index.unsettlings();
  index.Settle(unsettlings);
  EXPECT_TRUE(index.settled());
}

TEST(HomeIndex, AReplicaThatDoesNotSayInTimeDoesNotMakeAStripeAbsent) {
  HomeOfThree of;
  const StripeId stripe{{4, 4}};
  for (FakeTarget& target : of.targets) target.filed[stripe].manifest.stripe = stripe;
  const auto found_when = [&](Code first, Code others) {
    for (FakeTarget& target : of.targets) target.says_of_filed = others;
    of.targets[0].says_of_filed = first;
    Task<Result<FiledStripe>> found = of.home.index().FindFiled(stripe);
    of.loop.RunReady();
    return found.Take().code();
  };
  EXPECT_EQ(found_when(Code::kDeadline, Code::kOk), Code::kOk);
  EXPECT_EQ(found_when(Code::kDeadline, Code::kNotFound), Code::kDeadline);
  EXPECT_EQ(found_when(Code::kOverloaded, Code::kNotFound), Code::kOverloaded);
  EXPECT_EQ(found_when(Code::kUnavailable, Code::kCorrupt), Code::kUnavailable);
  EXPECT_EQ(found_when(Code::kCorrupt, Code::kNotFound), Code::kNotFound);
}

}  // namespace
}  // namespace cairn::kv
