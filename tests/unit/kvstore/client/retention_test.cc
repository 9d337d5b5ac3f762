// How long blocks stay: TTLs, promises, touches, and clocks that step.
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

class RetentionTest : public ::testing::Test {
 protected:
  RetentionTest() {
    space = store.Attach({.name = "kept",
                          .fingerprint = "f",
                          .run_blocks = 8,
                          .retention = RetentionKind::kFixed,
                          .ttl_seconds = 1000,
                          .quota_bytes = 16 * kBlock})
                .value();
    store.space = space;
  }
  UnixMillis In(int64_t seconds) { return {store.clock().UnixNow().value + seconds * 1000}; }
  std::vector<Status> PutKept(const Chain& chain, UnixMillis keep_until) {
    ChainPut put = store.PutOf(chain, 0, chain.ids.size());
    put.keep_until = keep_until;
    return store.Await(store.store().Put(put));
  }
  std::vector<Status> Touch(const Chain& chain, UnixMillis keep_until) {
    return store.Await(store.store().Touch(space, chain.ids, 0, keep_until));
  }
  // Fills the namespace with other blocks.
  void Flood(int blocks = 40) {
    for (int i = 0; i < blocks; ++i) {
      store.clock().Advance(1000);
      ASSERT_THAT(store.Put(store.MakeChain({kBlock})), Each(IsOk())) << i;
    }
  }
  uint64_t KeptBytes() {
    for (const SpaceInfo& info : store.store().Spaces()) {
      if (info.id == space) return info.kept_bytes;
    }
    return 0;
  }

  Store store;
  NamespaceId space;
};

TEST_F(RetentionTest, APutsOwnTtlAndKindWin) {
  const Chain chain = store.MakeChain({kBlock});
  ChainPut put = store.PutOf(chain, 0, 1);
  put.ttl_seconds = 10;
  put.retention = RetentionKind::kRefreshed;
  EXPECT_THAT(store.Await(store.store().Put(put)), Each(IsOk()));
  for (int i = 0; i < 5; ++i) {
    store.clock().Advance(9'000);
    EXPECT_EQ(store.Lookup(chain).blocks, 1u) << i;
  }
  store.clock().Advance(10'000);
  EXPECT_EQ(store.Lookup(chain).blocks, 0u);
  EXPECT_EQ(store.Lookup(chain).miss, MissReason::kExpired);
  EXPECT_THAT(store.Get(chain, 0), HasCode(Code::kNotFound));
}

TEST_F(RetentionTest, WhatIsKeptIsNotEvictedAndSurvivesARestart) {
  const Chain chain = store.MakeChain({kBlock, kBlock});
  EXPECT_THAT(PutKept(chain, In(500)), Each(IsOk()));
  EXPECT_EQ(KeptBytes(), 2u * kBlock);
  Flood();
  store.Reopen();
  EXPECT_EQ(KeptBytes(), 2u * kBlock);
  Flood();
  store.ExpectAllReadable(chain);
  store.clock().Advance(500'000);
  EXPECT_EQ(KeptBytes(), 0u);
  Flood(20);
  EXPECT_EQ(store.Lookup(chain).blocks, 0u);
}

TEST_F(RetentionTest, APromiseOutlastsTheTtl) {
  const Chain chain = store.MakeChain({kBlock});
  ChainPut put = store.PutOf(chain, 0, 1);
  put.ttl_seconds = 10;
  put.keep_until = In(100);
  EXPECT_THAT(store.Await(store.store().Put(put)), Each(IsOk()));
  store.clock().Advance(99'000);
  EXPECT_THAT(store.Get(chain, 0), IsOk());
  store.clock().Advance(2'000);
  EXPECT_THAT(store.Get(chain, 0), HasCode(Code::kNotFound));
}

TEST_F(RetentionTest, PromisesBeyondTheQuotaAreRefusedAndStoreNothing) {
  EXPECT_THAT(PutKept(store.MakeChain(std::vector<uint32_t>(12, kBlock)), In(500)), Each(IsOk()));
  const Chain more = store.MakeChain(std::vector<uint32_t>(6, kBlock));
  const std::vector<Status> refused = PutKept(more, In(500));
  EXPECT_THAT(refused, Each(HasCode(Code::kOverloaded)));
  EXPECT_THAT(refused[0].message(), HasSubstr("quota"));
  EXPECT_EQ(store.Lookup(more).blocks, 0u);
  EXPECT_THAT(store.Put(store.MakeChain({kBlock})), Each(IsOk())) << "others still fit";
}

TEST_F(RetentionTest, WithoutAQuotaThereAreNoPromises) {
  store.space = store.Attach({.name = "free", .fingerprint = "f", .run_blocks = 8}).value();
  const Chain chain = store.MakeChain({kBlock});
  const std::vector<Status> refused = PutKept(chain, In(500));
  EXPECT_THAT(refused, Each(HasCode(Code::kOverloaded)));
  EXPECT_THAT(refused[0].message(), HasSubstr("none"));
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  EXPECT_THAT(store.Await(store.store().Touch(store.space, chain.ids, 0, In(500))),
              Each(HasCode(Code::kOverloaded)));
  EXPECT_THAT(PutKept(chain, {store.clock().UnixNow().value - 1}), Each(IsOk()))
      << "a time that is over promises nothing";
}

TEST_F(RetentionTest, ATouchPromisesAndSurvivesARestart) {
  const Chain chain = store.MakeChain(std::vector<uint32_t>(4, kBlock));
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  EXPECT_THAT(Touch(chain, In(500)), Each(IsOk()));
  EXPECT_EQ(KeptBytes(), 4u * kBlock);
  EXPECT_THAT(Touch(chain, In(600)), Each(IsOk()));
  EXPECT_THAT(Touch(chain, In(10)), Each(IsOk()));
  EXPECT_EQ(KeptBytes(), 4u * kBlock) << "counted once";
  store.Reopen();
  store.clock().Advance(450'000);
  Flood();
  store.ExpectAllReadable(chain);
  EXPECT_EQ(KeptBytes(), 4u * kBlock) << "a promise is never shortened";
}

TEST_F(RetentionTest, ATouchSaysWhatIsNotThereAndWhatCannotBeKept) {
  const Chain chain = store.MakeChain(std::vector<uint32_t>(3, kBlock));
  EXPECT_THAT(store.Await(store.store().Put(store.PutOf(chain, 0, 2))), Each(IsOk()));
  const std::vector<Status> touched = Touch(chain, {});
  ASSERT_EQ(touched.size(), 3u);
  EXPECT_THAT(touched[0], IsOk());
  EXPECT_THAT(touched[1], IsOk());
  EXPECT_THAT(touched[2], HasCode(Code::kNotFound));
  EXPECT_THAT(PutKept(store.MakeChain(std::vector<uint32_t>(8, kBlock)), In(500)), Each(IsOk()));
  EXPECT_THAT(PutKept(store.MakeChain(std::vector<uint32_t>(6, kBlock)), In(500)), Each(IsOk()));
  const std::vector<Status> refused = Touch(chain, In(500));
  EXPECT_THAT(refused[0], IsOk()) << "14 of 16 are kept: two more fit";
  EXPECT_THAT(PutKept(store.MakeChain({kBlock}), In(500)), Each(HasCode(Code::kOverloaded)));
}

TEST_F(RetentionTest, APutOfWhatIsThereKeepsIt) {
  const Chain chain = store.MakeChain(std::vector<uint32_t>(4, kBlock));
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  EXPECT_EQ(KeptBytes(), 0u);
  EXPECT_THAT(PutKept(chain, In(500)), Each(IsOk()));
  EXPECT_EQ(KeptBytes(), 4u * kBlock);
}

TEST_F(RetentionTest, DeletionEndsAPromise) {
  const Chain chain = store.MakeChain(std::vector<uint32_t>(4, kBlock));
  EXPECT_THAT(PutKept(chain, In(500)), Each(IsOk()));
  EXPECT_THAT(store.Await(store.store().Delete(space, chain.ids, 0)), IsOk());
  EXPECT_EQ(KeptBytes(), 0u);
  EXPECT_THAT(store.Get(chain, 0), HasCode(Code::kNotFound));
}

TEST_F(RetentionTest, AStepForwardExpiresAndAStepBackResurrectsNothing) {
  const Chain removed = store.MakeChain({kBlock});
  EXPECT_THAT(store.Put(removed), Each(IsOk()));
  store.clock().Advance(1'000'000);
  EXPECT_EQ(store.Lookup(removed).miss, MissReason::kExpired);
  EXPECT_THAT(store.Get(removed, 0), HasCode(Code::kNotFound));
  for (size_t i = 0; i < store.target_count(); ++i) {
    const std::map<StripeId, IndexedStripe> filed = store.target(i).filed;
    for (const auto& [id, stripe] : filed) {
      const StripeName doomed{space, stripe.manifest.run, id};
      (void)store.Await(store.store().index().Remove(doomed, MissReason::kExpired));
    }
  }
  store.clock().Advance(-1'000'000);
  EXPECT_EQ(store.Lookup(removed).blocks, 0u);
  EXPECT_EQ(store.Lookup(removed).miss, MissReason::kExpired);
  store.Reopen();
  EXPECT_EQ(store.Lookup(removed).blocks, 0u);
  EXPECT_THAT(store.Put(removed), Each(IsOk()));
  EXPECT_EQ(store.Lookup(removed).blocks, 1u);
}

TEST_F(RetentionTest, ExpiryGoesOnThroughARestart) {
  const Chain chain = store.MakeChain({kBlock});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  store.clock().Advance(999'000);
  store.Reopen();
  EXPECT_EQ(store.Lookup(chain).blocks, 1u);
  store.clock().Advance(1'000);
  EXPECT_EQ(store.Lookup(chain).blocks, 0u);
  store.Reopen();
  EXPECT_EQ(store.Lookup(chain).miss, MissReason::kExpired);
}

TEST_F(RetentionTest, ImpossibleTimesAreRefused) {
  const Chain chain = store.MakeChain({kBlock});
  EXPECT_THAT(PutKept(chain, {-1}), Each(HasCode(Code::kInvalid)));
  EXPECT_THAT(PutKept(chain, {INT64_MAX}), Each(HasCode(Code::kInvalid)));
  EXPECT_THAT(Touch(chain, {-1}), Each(HasCode(Code::kInvalid)));
}

}  // namespace
}  // namespace cairn::kv
