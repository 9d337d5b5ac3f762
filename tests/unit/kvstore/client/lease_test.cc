// Leases as the store gives them: what they protect from, and what ends them.
#include <gtest/gtest.h>

#include "tests/unit/kvstore/client/store_fixture.h"

namespace cairn::kv {
namespace {

using ::testing::Each;
using testing::HasCode;
using testing::IsOk;

ChainHit LookupWith(Store& store, const Chain& chain, LeaseOrder order) {
  return store.Await(store.store().Lookup(store.space, chain.ids, order)).value();
}

// What reclaim does to the stripe of block `at`. False: it was refused.
bool Evict(Store& store, const Chain& chain, size_t at,
           MissReason reason = MissReason::kEvicted) {
  for (size_t i = 0; i < store.target_count(); ++i) {
    for (const auto& [id, stripe] : store.target(i).filed) {
      for (const ManifestBlock& block : stripe.manifest.blocks) {
        if (block.id != chain.ids[at]) continue;
        const StripeName name{store.space, stripe.manifest.run, id};
        return store.Await(store.store().index().Remove(name, reason)).ok();
      }
    }
  }
  ADD_FAILURE() << "no such stripe";
  return false;
}

TEST(Leases, KeepWhatALookupFoundUntilTheDeadline) {
  Store store;
  const Chain chain = store.MakeChain(std::vector<uint32_t>(20, 10'000));  // Runs of 8.
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  const ChainHit hit = LookupWith(store, chain, {.duration = Seconds(10)});
  EXPECT_NE(hit.lease.value, 0u);
  EXPECT_EQ(hit.lease_for, Seconds(10));
  for (const size_t at : {0u, 8u, 16u}) EXPECT_FALSE(Evict(store, chain, at)) << at;
  store.ExpectAllReadable(chain);
  EXPECT_EQ(store.stats().evicted_stripes, 0u);
  store.clock().Advance(10'000);
  EXPECT_TRUE(Evict(store, chain, 8));
  EXPECT_EQ(store.Lookup(chain).blocks, 8u);
  EXPECT_EQ(store.Lookup(chain).miss, MissReason::kEvicted);
}

TEST(Leases, CoverOnlyWhatWasFound) {
  Store store;
  const Chain chain = store.MakeChain(std::vector<uint32_t>(8, 10'000));
  EXPECT_EQ(LookupWith(store, chain, {.duration = Seconds(10)}).lease.value, 0u);
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  EXPECT_EQ(store.Lookup(chain).lease.value, 0u) << "none was asked for";
  EXPECT_TRUE(Evict(store, chain, 0));
}

TEST(Leases, AreRenewedAndReleasedInBatches) {
  Store store;
  const Chain one = store.MakeChain({10'000});
  const Chain other = store.MakeChain({10'000});
  EXPECT_THAT(store.Put(one), Each(IsOk()));
  EXPECT_THAT(store.Put(other), Each(IsOk()));
  const std::vector<LeaseId> leases = {LookupWith(store, one, {.duration = Seconds(10)}).lease,
                                       LookupWith(store, other, {.duration = Seconds(10)}).lease};
  store.clock().Advance(9'000);
  EXPECT_THAT(store.Await(store.store().Renew(leases, {.duration = Seconds(10)})), Each(IsOk()));
  store.clock().Advance(9'000);
  EXPECT_FALSE(Evict(store, one, 0));
  EXPECT_THAT(store.Await(store.store().Release({leases[0]}, {})), IsOk());
  EXPECT_TRUE(Evict(store, one, 0));
  EXPECT_FALSE(Evict(store, other, 0));
  store.clock().Advance(1'000);
  EXPECT_THAT(store.Await(store.store().Renew(leases, {.duration = Seconds(10)})),
              Each(HasCode(Code::kNotFound)));
}

TEST(Leases, EndWithTheirSession) {
  Store store;
  const Chain chain = store.MakeChain({10'000});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  const SessionId session = store.store().OpenSession();
  LookupWith(store, chain, {.session = session, .duration = Seconds(600)});
  EXPECT_FALSE(Evict(store, chain, 0));
  store.store().EndSession(session);
  EXPECT_TRUE(Evict(store, chain, 0));
  EXPECT_EQ(LookupWith(store, chain, {.session = session, .duration = Seconds(1)}).lease.value, 0u);
}

TEST(Leases, NeverOutlastABlocksExpiry) {
  Store store;
  store.space = store.Attach({.name = "short",
                              .fingerprint = "f1",
                              .run_blocks = 8,
                              .retention = RetentionKind::kFixed,
                              .ttl_seconds = 5})
                    .value();
  const Chain chain = store.MakeChain({10'000});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  store.clock().Advance(2'000);
  const ChainHit hit = LookupWith(store, chain, {.duration = Seconds(60)});
  EXPECT_EQ(hit.lease_for, Seconds(3));
  EXPECT_TRUE(Evict(store, chain, 0, MissReason::kExpired)) << "expiry goes ahead";
}

TEST(Leases, DoNotProtectFromDeletion) {
  Store store;
  const Chain chain = store.MakeChain({10'000});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  LookupWith(store, chain, {.duration = Seconds(60)});
  EXPECT_THAT(store.Await(store.store().Delete(store.space, chain.ids, 0)), IsOk());
  EXPECT_THAT(store.Get(chain, 0), HasCode(Code::kNotFound));
  EXPECT_EQ(store.Lookup(chain).miss, MissReason::kAbsent);
  EXPECT_EQ(store.store().home().leases().Stats(store.clock().Now()).bytes, 0u);
}

TEST(Leases, OfSingleBlocksHoldThoseThatWereFound) {
  Store store;
  const Chain chain = store.MakeChain(std::vector<uint32_t>(24, 10'000));
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  EXPECT_TRUE(Evict(store, chain, 8));
  auto each = store.Await(
      store.store().LookupEach(store.space, chain.ids, 4, {.duration = Seconds(10)}));
  ASSERT_THAT(each, IsOk());
  ASSERT_EQ(each.value().blocks.size(), 20u);
  for (size_t i = 0; i < 20; ++i) {
    const bool gone = i + 4 >= 8 && i + 4 < 16;
    EXPECT_EQ(each.value().blocks[i].size, gone ? 0u : 10'000u) << i;
    EXPECT_EQ(each.value().blocks[i].miss, gone ? MissReason::kEvicted : MissReason::kNone) << i;
  }
  EXPECT_NE(each.value().lease.value, 0u);
  EXPECT_FALSE(Evict(store, chain, 0));
  EXPECT_FALSE(Evict(store, chain, 16));
}

TEST(Leases, OfImpossibleDurationsAreRefused) {
  Store store;
  const Chain chain = store.MakeChain({10'000});
  const LeaseOrder order{.duration = Seconds(kLeaseSecondsMax + 1)};
  EXPECT_THAT(store.Await(store.store().Lookup(store.space, chain.ids, order)),
              HasCode(Code::kInvalid));
}

TEST(Leases, ALookupNeverShowsWhatWentWhileItWaited) {
  Store store;
  const Chain chain = store.MakeChain(std::vector<uint32_t>(16, 10'000));
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  store.Reopen();  // Nothing is cached.
  LookupGauge gauge(store.loop());
  for (size_t i = 0; i < store.target_count(); ++i) store.target(i).lookup_gauge = &gauge;
  Task<Result<ChainHit>> lookup =
      store.store().Lookup(store.space, chain.ids, {.duration = Seconds(10)});
  EXPECT_TRUE(Evict(store, chain, 0)) << "the lease is given at the end";
  const auto hit = store.Await(std::move(lookup));
  EXPECT_EQ(hit.value().blocks, 0u);
  EXPECT_EQ(hit.value().miss, MissReason::kEvicted);
  EXPECT_EQ(hit.value().lease.value, 0u);
}

}  // namespace
}  // namespace cairn::kv
