// Whole puts, lookups and gets over targets in memory.
#include "kvstore/client/striped_store.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <set>

#include "tests/support/status_matchers.h"
#include "kvstore/base/checksum.h"
#include "tests/unit/kvstore/client/store_fixture.h"

namespace cairn::kv {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using testing::HasCode;
using ::testing::HasSubstr;
using testing::IsOk;

TEST(StripedStore, ReturnsWhatWasPut) {
  Store store;
  const Chain chain = store.MakeChain({1, 4096, 70'000, 1'000'000, 5'000, 3'000'001});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  const ChainHit hit = store.Lookup(chain);
  EXPECT_EQ(hit.blocks, 6u);
  EXPECT_EQ(hit.miss, MissReason::kNone);
  EXPECT_EQ(hit.sizes[3], 1'000'000u);
  EXPECT_GT(hit.load_estimate.value, 0);
  store.ExpectAllReadable(chain);
  EXPECT_EQ(store.stats().degraded_reads, 0u);
}

TEST(StripedStore, ReadsIntoMemoryThatIsNotAligned) {
  Store store;
  const Chain chain = store.MakeChain({1'000'000});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  EXPECT_THAT(store.Get(chain, 0, kNever, 13), IsOk());
}

TEST(StripedStore, FindsTheLongestPrefixOverManyRuns) {
  Store store;
  Chain chain = store.MakeChain(std::vector<uint32_t>(30, 10'000));
  const auto outcomes = store.Await(store.store().Put(store.PutOf(chain, 0, 20)));
  EXPECT_THAT(outcomes, Each(IsOk()));
  const ChainHit hit = store.Lookup(chain);
  EXPECT_EQ(hit.blocks, 20u);
  EXPECT_EQ(hit.miss, MissReason::kAbsent);
}

TEST(StripedStore, AGetAfterALookupReadsNoMetadata) {
  Store store;
  const Chain chain = store.MakeChain({10'000, 20'000});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  store.Reopen();
  EXPECT_EQ(store.Lookup(chain).blocks, 2u);
  int index_reads = 0;
  for (size_t i = 0; i < 12; ++i) index_reads += store.target(i).index_reads;
  store.ExpectAllReadable(chain);
  for (size_t i = 0; i < 12; ++i) index_reads -= store.target(i).index_reads;
  EXPECT_EQ(index_reads, 0);
}

TEST(StripedStore, AHealthyReadTouchesOnlyTheShardsOfTheBlock) {
  Store store;
  const Chain chain = store.MakeChain(std::vector<uint32_t>(8, 256 * 1024));  // Shards of 212 KiB.
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  EXPECT_THAT(store.Get(chain, 0), IsOk());
  int reads = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < 12; ++i) {
    reads += store.target(i).reads;
    bytes += store.target(i).bytes_read;
  }
  EXPECT_EQ(reads, 2);
  EXPECT_EQ(bytes, 256u * 1024);
}

TEST(StripedStore, SurvivesTheLossOfEveryPairOfTargets) {
  Store store;
  const Chain chain = store.MakeChain({1'000'000, 40'000, 3'000'000, 1});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  for (size_t a = 0; a < 12; ++a) {
    for (size_t b = 0; b < a; ++b) {
      store.target(a).down = store.target(b).down = true;
      store.ExpectAllReadable(chain);
      store.target(a).down = store.target(b).down = false;
    }
  }
  EXPECT_GT(store.stats().degraded_reads, 0u);
}

TEST(StripedStore, SurvivesDamageOnEveryPairOfTargets) {
  Store store;
  const Chain chain = store.MakeChain({1'000'000, 40'000, 3'000'000, 1});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  for (size_t a = 0; a < 12; ++a) {
    for (size_t b = 0; b < a; ++b) {
      store.target(a).FlipBits(17);
      store.target(b).FlipBits(17);
      store.ExpectAllReadable(chain);
      store.target(a).FlipBits(17);
      store.target(b).FlipBits(17);
    }
  }
  EXPECT_GT(store.stats().corrupt_shards, 0u);
}

TEST(StripedStore, FindsADamagedSurvivorWhenADecodeDoesNotFit) {
  Store store;
  const Chain chain = store.MakeChain(std::vector<uint32_t>(4, 300'000));
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  // Block 0 lies on shards 0 to 2; its range is rebuilt from shards whose damage nobody has seen.
  for (size_t lost = 0; lost < 12; ++lost) {
    for (size_t damaged = 0; damaged < 12; ++damaged) {
      if (lost == damaged) continue;
      store.target(lost).down = true;
      for (uint64_t byte = 0; byte < 120'000; byte += 20'000) store.target(damaged).FlipBits(byte);
      store.ExpectAllReadable(chain);
      for (uint64_t byte = 0; byte < 120'000; byte += 20'000) store.target(damaged).FlipBits(byte);
      store.target(lost).down = false;
    }
  }
  int verified = 0;
  for (size_t i = 0; i < 12; ++i) verified += store.target(i).verified_reads;
  EXPECT_GT(verified, 0);
}

TEST(StripedStore, BeyondTheFaultBudgetItIsAMissAndNeverWrongBytes) {
  Store store;
  const Chain chain = store.MakeChain({2'000'000});  // On all ten data shards.
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  for (size_t i = 0; i < 3; ++i) store.target(i).FlipBits(5);
  store.target(3).down = true;
  for (size_t i = 0; i < chain.ids.size(); ++i) {
    EXPECT_THAT(store.Get(chain, i), HasCode(Code::kUnavailable));
  }
}

TEST(StripedStore, SaysWhyABlockIsNotThere) {
  Store store;
  const Chain chain = store.MakeChain({1'000'000});
  EXPECT_EQ(store.Lookup(chain).miss, MissReason::kAbsent);
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  for (size_t i = 0; i < 3; ++i) store.target(i).shards.clear();
  EXPECT_EQ(store.Lookup(chain).miss, MissReason::kUnavailable);

  const Chain evicted = store.MakeChain({1'000'000});
  EXPECT_THAT(store.Put(evicted), Each(IsOk()));
  const Manifest manifest = [&] {
    for (size_t i = 0; i < 12; ++i) {
      for (const auto& [id, stripe] : store.target(i).filed) {
        if (stripe.manifest.blocks[0].id == evicted.ids[0]) return stripe.manifest;
      }
    }
    return Manifest();
  }();
  const StripeName name{manifest.space, manifest.run, manifest.stripe};
  EXPECT_THAT(store.Await(store.store().index().Remove(name, MissReason::kEvicted)), IsOk());
  EXPECT_EQ(store.Lookup(evicted).miss, MissReason::kEvicted);
  EXPECT_THAT(store.Get(evicted, 0), HasCode(Code::kNotFound));
}

TEST(StripedStore, NothingExpiredIsServed) {
  Store store;
  const Chain chain = store.MakeChain({10'000});
  ChainPut put = store.PutOf(chain, 0, 1);
  put.ttl_seconds = 10;
  EXPECT_THAT(store.Await(store.store().Put(put)), Each(IsOk()));
  store.clock().Advance(9'000);
  EXPECT_EQ(store.Lookup(chain).blocks, 1u);  // Refreshes.
  store.clock().Advance(9'000);
  EXPECT_THAT(store.Get(chain, 0), IsOk());  // Refreshes, too.
  store.clock().Advance(9'000);
  EXPECT_THAT(store.Put(chain), Each(IsOk()));  // As does a put of what is there.
  EXPECT_EQ(store.stats().puts_stored, 1u);
  store.clock().Advance(9'999);
  EXPECT_EQ(store.Lookup(chain).blocks, 1u);
  store.clock().Advance(10'000);
  EXPECT_THAT(store.Get(chain, 0), HasCode(Code::kNotFound));
  EXPECT_EQ(store.Lookup(chain).miss, MissReason::kExpired);
}

TEST(StripedStore, WhatIsNotAdmittedIsNoFailure) {
  Store store;
  store.options().admission.policy = AdmissionPolicy::kSecondSight;
  store.Reopen();
  const Chain chain = store.MakeChain({10'000, 10'000});
  EXPECT_THAT(store.Put(chain), Each(HasCode(Code::kNotFound)));
  EXPECT_EQ(store.Lookup(chain).blocks, 0u);
  EXPECT_EQ(store.stats().puts_declined, 2u);
  EXPECT_EQ(store.stats().puts_failed, 0u);
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  EXPECT_EQ(store.Lookup(chain).blocks, 2u);
  EXPECT_EQ(store.stats().puts_declined, 2u);
}

TEST(StripedStore, AFixedTtlIsNotRefreshed) {
  Store store;
  store.space = store
                    .Attach({.name = "fixed",
                             .fingerprint = "f",
                             .retention = RetentionKind::kFixed,
                             .ttl_seconds = 10})
                    .value();
  const Chain chain = store.MakeChain({10'000});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  store.clock().Advance(9'999);
  EXPECT_EQ(store.Lookup(chain).blocks, 1u);
  store.clock().Advance(1);
  EXPECT_EQ(store.Lookup(chain).miss, MissReason::kExpired);
}

TEST(StripedStore, AnExpiredBlockMayBePutAgain) {
  Store store;
  const Chain chain = store.MakeChain({10'000});
  ChainPut put = store.PutOf(chain, 0, 1);
  put.ttl_seconds = 1;
  EXPECT_THAT(store.Await(store.store().Put(put)), Each(IsOk()));
  store.clock().Advance(2'000);
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  store.ExpectAllReadable(chain);
}

TEST(StripedStore, TheFirstWriterWins) {
  Store store;
  const Chain first = store.MakeChain({50'000});
  Chain second = store.MakeChain({60'000});
  second.ids = first.ids;
  EXPECT_THAT(store.Put(first), Each(IsOk()));
  EXPECT_THAT(store.Put(second), Each(IsOk()));
  store.ExpectAllReadable(first);
  EXPECT_EQ(store.stats().puts_stored, 1u);
}

TEST(StripedStore, BytesThatDoNotHaveTheirChecksumAreNotStored) {
  Store store;
  const Chain chain = store.MakeChain({50'000, 2'000'000});
  ChainPut put = store.PutOf(chain, 0, 2);
  for (BlockWrite& block : put.blocks) block.checksum = Checksum(block.bytes);
  *put.blocks[1].checksum ^= 1;
  EXPECT_THAT(store.Await(store.store().Put(put)), Each(HasCode(Code::kCorrupt)));
  EXPECT_EQ(store.Lookup(chain).blocks, 0u);
  *put.blocks[1].checksum ^= 1;
  EXPECT_THAT(store.Await(store.store().Put(put)), Each(IsOk()));
  store.ExpectAllReadable(chain);
}

TEST(StripedStore, APutOfWhatIsBeingPutWaitsForIt) {
  Store store;
  const Chain chain = store.MakeChain({50'000});
  Event hold(store.loop());
  for (size_t i = 0; i < 12; ++i) store.target(i).hold = &hold;
  auto first = store.store().Put(store.PutOf(chain, 0, 1));
  auto second = store.store().Put(store.PutOf(chain, 0, 1));
  store.loop().RunReady();
  EXPECT_FALSE(first.done());
  EXPECT_FALSE(second.done());
  EXPECT_EQ(store.Lookup(chain).blocks, 0u);  // Not committed: not visible.
  hold.Set();
  EXPECT_THAT(store.Await(std::move(first)), Each(IsOk()));
  EXPECT_THAT(store.Await(std::move(second)), Each(IsOk()));
  EXPECT_EQ(store.stats().stripes_written, 1u);
}

TEST(StripedStore, RefusesMoreThanItMayHaveInFlight) {
  Store store;
  const Chain chain = store.MakeChain({5'000'000});
  const Chain more = store.MakeChain({5'000'000});
  Event hold(store.loop());
  for (size_t i = 0; i < 12; ++i) store.target(i).hold = &hold;
  auto first = store.store().Put(store.PutOf(chain, 0, 1));
  EXPECT_THAT(store.Put(more), Each(HasCode(Code::kOverloaded)));
  hold.Set();
  EXPECT_THAT(store.Await(std::move(first)), Each(IsOk()));
  EXPECT_THAT(store.Put(more), Each(IsOk()));
}

TEST(StripedStore, PutsWithTargetsDownStayRedundant) {
  Store store;
  for (const size_t down : {3, 8}) store.target(down).down = true;
  const Chain chain = store.MakeChain({1'000'000, 2'000'000});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  store.ExpectAllReadable(chain);
  store.target(0).down = store.target(1).down = true;  // Two more.
  store.Reopen();
  store.ExpectAllReadable(chain);
}

TEST(StripedStore, WithTooFewTargetsAPutFailsAndLeavesNothing) {
  Store store;
  for (size_t i = 0; i < 11; ++i) store.target(i).down = true;
  const Chain chain = store.MakeChain({1'000'000});
  EXPECT_THAT(store.Put(chain), Each(HasCode(Code::kUnavailable)));
  for (size_t i = 0; i < 12; ++i) {
    store.target(i).down = false;
    EXPECT_TRUE(store.target(i).shards.empty());
    EXPECT_TRUE(store.target(i).filed.empty());
  }
  EXPECT_EQ(store.Lookup(chain).blocks, 0u);
}

TEST(StripedStore, ADurablePutIsSyncedBeforeItIsPublished) {
  Store store;
  const Chain chain = store.MakeChain({1'000'000});
  ChainPut put = store.PutOf(chain, 0, 1);
  put.ack = Ack::kDurable;
  EXPECT_THAT(store.Await(store.store().Put(put)), Each(IsOk()));
  int durable = 0;
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(store.target(i).syncs, 1);
    durable += store.target(i).durable_publications;
  }
  EXPECT_EQ(durable, 3);
}

TEST(StripedStore, AFullStoreAsksForRoomAndGoesOn) {
  Store store;
  for (size_t i = 0; i < 12; ++i) store.target(i).capacity = 1 * kMiB;
  const Chain first = store.MakeChain({8'000'000});
  const Chain second = store.MakeChain({7'000'000});
  EXPECT_THAT(store.Put(first), Each(IsOk()));
  EXPECT_THAT(store.Put(second), Each(HasCode(Code::kNoSpace)));
  store.keeper().make_room = [&] {
    for (size_t i = 0; i < 12; ++i) store.target(i).Wipe();
  };
  EXPECT_THAT(store.Put(second), Each(IsOk()));
}

TEST(StripedStore, AnIndexReplicaThatForgotHidesNothing) {
  Store store;
  const Chain chain = store.MakeChain({100'000});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  std::vector<size_t> replicas;
  for (size_t i = 0; i < 12; ++i) {
    if (!store.target(i).filed.empty()) replicas.push_back(i);
  }
  ASSERT_EQ(replicas.size(), 3u);
  store.target(replicas[0]).filed.clear();
  store.target(replicas[1]).filed.clear();
  store.Reopen();
  EXPECT_EQ(store.Lookup(chain).blocks, 1u);
}

TEST(StripedStore, AnotherFingerprintIsAConflictThatShowsBoth) {
  Store store;
  const auto other = store.Attach({.name = "tests", .fingerprint = "f2", .run_blocks = 8});
  EXPECT_THAT(other, HasCode(Code::kConflict));
  EXPECT_THAT(other.status().message(), AllOf(HasSubstr("f1"), HasSubstr("f2")));
  store.Reopen();
  EXPECT_THAT(store.Attach({.name = "tests", .fingerprint = "f1", .run_blocks = 8}), IsOk());
}

TEST(StripedStore, RefusesBadRequests) {
  Store store;
  const Chain chain = store.MakeChain({100, 100});
  ChainPut put = store.PutOf(chain, 0, 2);
  std::swap(put.blocks[0], put.blocks[1]);
  EXPECT_THAT(store.Await(store.store().Put(put)), Each(HasCode(Code::kInvalid)));
  put = store.PutOf(chain, 0, 2);
  put.blocks[1].bytes = {};
  EXPECT_THAT(store.Await(store.store().Put(put)), Each(HasCode(Code::kInvalid)));
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  Bytes room(10);
  const std::vector<BlockRead> reads{{chain.ids[0], room.span()}};
  const auto results = store.Await(store.store().Get(store.space, chain.ids, reads, kNever));
  EXPECT_THAT(results[0].status, HasCode(Code::kInvalid));
}

TEST(StripedStore, ALateGetIsAMiss) {
  Store store;
  const Chain chain = store.MakeChain({100'000});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  EXPECT_THAT(store.Get(chain, 0, store.clock().Now()), HasCode(Code::kDeadline));
}

TEST(StripedStore, ADeleteThatATargetDoesNotTakeSaysSo) {
  Store store;
  const Chain chain = store.MakeChain({10'000});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  for (size_t i = 0; i < store.target_count(); ++i) store.target(i).refuses_withdrawals = true;
  EXPECT_THAT(store.Await(store.store().Delete(store.space, chain.ids, 0)),
              HasCode(Code::kUnavailable));
}

TEST(StripedStore, DeleteTakesTheTailOfAChain) {
  Store store;
  const Chain chain = store.MakeChain(std::vector<uint32_t>(16, 10'000));
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  EXPECT_THAT(store.Await(store.store().Delete(store.space, chain.ids, 8)), IsOk());
  EXPECT_EQ(store.Lookup(chain).blocks, 8u);
}

TEST(StripedStore, LooksRunsUpSideBySideAndNoneAfterAMiss) {
  Store store;
  const Chain chain = store.MakeChain(std::vector<uint32_t>(96, 4096));  // 12 runs.
  for (const Status& status : store.Put(chain)) ASSERT_THAT(status, IsOk());
  store.Reopen();  // Nothing is in the cache.
  LookupGauge gauge(store.loop());
  for (size_t i = 0; i < store.target_count(); ++i) store.target(i).lookup_gauge = &gauge;
  EXPECT_EQ(store.Lookup(chain).blocks, 96u);
  EXPECT_EQ(gauge.runs.size(), 12u);
  EXPECT_GE(gauge.peak, 4);
  EXPECT_LE(gauge.peak, 8);

  // The second run of a chain like it is not there: of those behind it only what was on its way.
  Chain other{.ids = chain.ids, .bytes = {}};
  for (size_t i = 8; i < other.ids.size(); ++i) other.ids[i].high ^= 1;
  store.Reopen();
  gauge.runs.clear();
  const ChainHit hit = store.Lookup(other);
  EXPECT_EQ(hit.blocks, 8u);
  EXPECT_EQ(hit.sizes.size(), 8u);
  EXPECT_EQ(hit.miss, MissReason::kAbsent);
  EXPECT_EQ(gauge.runs.size(), 3u);
  EXPECT_EQ(gauge.in_flight, 0);
}

}  // namespace
}  // namespace cairn::kv
