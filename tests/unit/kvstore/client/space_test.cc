// Namespaces as the store keeps them: created, attached to, deleted, and within their quota.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/kvstore/client/store_fixture.h"

namespace cairn::kv {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using testing::HasCode;
using testing::IsOk;

constexpr uint32_t kBlock = 64 * kKiB;

NamespaceOptions Guarded() {
  return {.name = "guarded", .fingerprint = "f", .run_blocks = 8, .token = "token"};
}

uint64_t BytesHeld(Store& store) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < store.target_count(); ++i) bytes += store.target(i).used();
  return bytes;
}

SpaceInfo InfoOf(Store& store, NamespaceId space) {
  for (const SpaceInfo& info : store.store().Spaces()) {
    if (info.id == space) return info;
  }
  return {};
}

TEST(Spaces, AreCreatedOnceAndAttachedToByToken) {
  Store store;
  const auto created = store.Await(store.store().CreateSpace(Guarded()));
  ASSERT_THAT(created, IsOk());
  EXPECT_THAT(store.Await(store.store().CreateSpace(Guarded())), HasCode(Code::kConflict));
  EXPECT_EQ(store.Attach(Guarded()).value(), created.value());
  NamespaceOptions wrong = Guarded();
  wrong.token = "guess";
  EXPECT_THAT(store.Attach(wrong), HasCode(Code::kConflict));
  store.Reopen();
  EXPECT_EQ(store.Attach(Guarded()).value(), created.value());
  EXPECT_THAT(store.Attach(wrong), HasCode(Code::kConflict));
  for (const auto& [name, record] : store.target(0).spaces) {
    EXPECT_EQ(EncodeSpace(record).find("token"), std::string::npos) << "stored in clear";
  }
}

TEST(Spaces, AttachWithoutCreateFindsOnlyWhatIsThere) {
  Store store;
  EXPECT_THAT(store.Attach({.name = "none", .fingerprint = "f", .create = false}),
              HasCode(Code::kNotFound));
  EXPECT_EQ(store.Attach({.name = "tests", .fingerprint = "f1", .run_blocks = 8, .create = false})
                .value(),
            store.space);
}

TEST(Spaces, AnExistingOneKeepsItsPolicy) {
  Store store;
  EXPECT_THAT(store.Attach({.name = "tests", .fingerprint = "f1", .run_blocks = 8,
                            .ttl_seconds = 1, .quota_bytes = 1}),
              IsOk());
  EXPECT_EQ(InfoOf(store, store.space).options.quota_bytes, 0u);
  EXPECT_EQ(InfoOf(store, store.space).options.ttl_seconds, 3u * 24 * 3600);
}

TEST(Spaces, TellWhatTheyHaveStored) {
  Store store;
  const Chain chain = store.MakeChain({kBlock, 1, 5000});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  const uint64_t stored = kBlock + 4096 + 8192;
  EXPECT_EQ(InfoOf(store, store.space).stored_bytes, stored);
  EXPECT_EQ(InfoOf(store, store.space).stripes, 1u);
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  EXPECT_EQ(InfoOf(store, store.space).stored_bytes, stored) << "nothing was stored again";
  store.Reopen();
  EXPECT_EQ(InfoOf(store, store.space).stored_bytes, stored) << "counted from the index";
  EXPECT_THAT(store.Await(store.store().Delete(store.space, chain.ids, 0)), IsOk());
  EXPECT_EQ(InfoOf(store, store.space).stored_bytes, 0u);
  EXPECT_EQ(InfoOf(store, store.space).stripes, 0u);
}

TEST(Spaces, AFailedPutCountsNothing) {
  Store store;
  for (size_t i = 0; i < 11; ++i) store.target(i).down = true;
  const Chain chain = store.MakeChain({kBlock});
  EXPECT_THAT(store.Put(chain), Each(HasCode(Code::kUnavailable)));
  EXPECT_EQ(InfoOf(store, store.space).stored_bytes, 0u);
}

TEST(Spaces, NothingOfADeletedOneIsReadableAlsoWhenItsNameIsUsedAgain) {
  Store store;
  const Chain chain = store.MakeChain({kBlock, kBlock});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  EXPECT_THAT(store.Await(store.store().DeleteSpace("tests")), IsOk());
  EXPECT_THAT(store.Get(chain, 0), HasCode(Code::kNotFound));
  EXPECT_THAT(store.Await(store.store().Lookup(store.space, chain.ids)), HasCode(Code::kNotFound));
  EXPECT_THAT(store.Put(chain), Each(HasCode(Code::kNotFound)));
  EXPECT_THAT(store.Await(store.store().DeleteSpace("tests")), HasCode(Code::kNotFound));
  store.space = store.Attach({.name = "tests", .fingerprint = "f1", .run_blocks = 8}).value();
  EXPECT_EQ(store.Lookup(chain).blocks, 0u);
  EXPECT_EQ(store.Lookup(chain).miss, MissReason::kAbsent);
  store.Reopen();
  EXPECT_EQ(store.Lookup(chain).blocks, 0u);
}

TEST(Spaces, ADeletedOneGivesItsSpaceBackInSteps) {
  Store store;
  std::vector<Chain> chains;
  for (int i = 0; i < 300; ++i) {
    chains.push_back(store.MakeChain({4096}));
    ASSERT_THAT(store.Put(chains.back()), Each(IsOk()));
  }
  const NamespaceId doomed = store.space;
  store.space = store.Attach({.name = "other", .fingerprint = "f1", .run_blocks = 8}).value();
  const Chain kept = store.MakeChain({kBlock});
  EXPECT_THAT(store.Put(kept), Each(IsOk()));
  EXPECT_THAT(store.Await(store.store().DeleteSpace("tests")), IsOk());
  store.Await(store.store().KeepHouse());
  EXPECT_EQ(store.stats().deleted_stripes, 256u) << "one step";
  store.Reopen();  // It goes on after a restart.
  EXPECT_TRUE(store.store().home().spaces().IsDeleted(doomed));
  int steps = 0;
  while (store.store().home().sweeper().sweeping()) {
    store.Await(store.store().KeepHouse());
    ASSERT_LT(++steps, 20);
  }
  EXPECT_EQ(store.stats().deleted_stripes, 44u);
  EXPECT_THAT(store.Get(kept, 0), IsOk());
  EXPECT_THAT(store.Await(store.store().DeleteSpace("other")), IsOk());
  store.Await(store.store().KeepHouse());
  EXPECT_EQ(BytesHeld(store), 0u);
  for (size_t i = 0; i < store.target_count(); ++i) EXPECT_TRUE(store.target(i).filed.empty());
}

TEST(Spaces, ATargetThatWasAwayCannotBringADeletedOneBack) {
  Store store;
  const Chain chain = store.MakeChain({kBlock});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  const std::map<std::string, SpaceRecord> before = store.target(3).spaces;
  EXPECT_THAT(store.Await(store.store().DeleteSpace("tests")), IsOk());
  store.target(3).spaces = before;  // It missed the deletion.
  store.target(3).tombstones.clear();
  const NamespaceId old = store.space;
  store.Reopen();
  EXPECT_TRUE(store.store().home().spaces().IsDeleted(old));
  EXPECT_EQ(store.store().home().spaces().FindName("tests"), nullptr);
  EXPECT_TRUE(store.target(3).tombstones.contains(old)) << "it learned the deletion";
  EXPECT_FALSE(store.target(3).spaces.contains("tests"));
}

TEST(Spaces, ADeletionThatNobodyRecordsDidNotHappen) {
  Store store;
  const Chain chain = store.MakeChain({kBlock});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  for (size_t i = 1; i < 12; ++i) store.target(i).down = true;
  EXPECT_THAT(store.Await(store.store().DeleteSpace("tests")), HasCode(Code::kUnavailable));
  for (size_t i = 1; i < 12; ++i) store.target(i).down = false;
  EXPECT_THAT(store.Get(chain, 0), IsOk());
}

TEST(Spaces, APutThatIsOverrunByTheDeletionLeavesNothing) {
  Store store;
  Event hold(store.loop());
  for (size_t i = 0; i < 12; ++i) store.target(i).hold = &hold;
  const Chain chain = store.MakeChain({kBlock});
  Task<std::vector<Status>> put = store.store().Put(store.PutOf(chain, 0, 1));
  store.loop().RunReady();
  EXPECT_THAT(store.Await(store.store().DeleteSpace("tests")), IsOk());
  hold.Set();
  EXPECT_THAT(store.Await(std::move(put)), Each(HasCode(Code::kNotFound)));
  EXPECT_EQ(BytesHeld(store), 0u);
}

TEST(Quotas, EvictTheNamespacesOwnOldest) {
  Store store;
  store.space = store.Attach({.name = "q", .fingerprint = "f", .run_blocks = 8,
                              .quota_bytes = 16 * kBlock})
                    .value();
  std::vector<Chain> chains;
  for (int i = 0; i < 40; ++i) {
    chains.push_back(store.MakeChain({kBlock}));
    ASSERT_THAT(store.Put(chains.back()), Each(IsOk())) << i;
    store.clock().Advance(1000);
    EXPECT_EQ(store.Lookup(chains.front()).blocks, 1u) << i;  // In use all the time.
    EXPECT_LE(InfoOf(store, store.space).stored_bytes, 16u * kBlock) << i;
  }
  EXPECT_EQ(store.Lookup(chains[39]).blocks, 1u);
  EXPECT_EQ(store.Lookup(chains[30]).blocks, 1u);
  EXPECT_EQ(store.Lookup(chains[10]).blocks, 0u);
  EXPECT_EQ(store.Lookup(chains[10]).miss, MissReason::kEvicted);
  EXPECT_GE(InfoOf(store, store.space).stored_bytes, 14u * kBlock) << "no more than needed";
}

TEST(Quotas, OfOneNamespaceDoNotTouchAnother) {
  Store store;
  const Chain bystander = store.MakeChain(std::vector<uint32_t>(8, kBlock));
  EXPECT_THAT(store.Put(bystander), Each(IsOk()));
  const NamespaceId other = store.space;
  store.space = store.Attach({.name = "q", .fingerprint = "f", .run_blocks = 8,
                              .quota_bytes = 4 * kBlock})
                    .value();
  for (int i = 0; i < 20; ++i) {
    const Chain chain = store.MakeChain({kBlock});
    ASSERT_THAT(store.Put(chain), Each(IsOk())) << i;
    store.clock().Advance(1000);
  }
  EXPECT_EQ(store.Await(store.store().Lookup(other, bystander.ids)).value().blocks, 8u);
  EXPECT_EQ(InfoOf(store, other).stored_bytes, 8u * kBlock);
}

TEST(Quotas, SayWhenAPutNeverFitsOrAllIsHeld) {
  Store store;
  store.space = store.Attach({.name = "q", .fingerprint = "f", .run_blocks = 8,
                              .quota_bytes = 4 * kBlock})
                    .value();
  EXPECT_THAT(store.Put(store.MakeChain({5 * kBlock})), Each(HasCode(Code::kNoSpace)));
  const Chain leased = store.MakeChain({4 * kBlock});
  EXPECT_THAT(store.Put(leased), Each(IsOk()));
  const LeaseOrder order{.duration = Seconds(10)};
  (void)store.Await(store.store().Lookup(store.space, leased.ids, order));
  const Chain chain = store.MakeChain({kBlock});
  EXPECT_THAT(store.Put(chain), Each(HasCode(Code::kOverloaded)));
  store.clock().Advance(11'000);
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
}

TEST(Quotas, APutOfSeveralStripesBeyondTheQuotaEvictsItsOwnFirstOnes) {
  Store store;
  store.space = store.Attach({.name = "q", .fingerprint = "f", .run_blocks = 8,
                              .quota_bytes = 10 * kBlock})
                    .value();
  const Chain chain = store.MakeChain(std::vector<uint32_t>(32, kBlock));  // Four runs.
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  EXPECT_LE(InfoOf(store, store.space).stored_bytes, 10u * kBlock);
}

}  // namespace
}  // namespace cairn::kv
