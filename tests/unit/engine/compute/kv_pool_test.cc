// KV blocks are given out, shared and taken back; their layout is stated.
#include "engine/compute/kv_pool.h"

#include <gtest/gtest.h>

namespace cairn::engine {
namespace {

constexpr KvLayout kSmall{.layers = 2, .kv_heads = 3, .head_dim = 8, .block_tokens = 16};

TEST(KvLayout, CountsBytesAndNamesItself) {
  EXPECT_EQ(kSmall.token_bytes(), 2u * 2 * 3 * 8 * 2);
  EXPECT_EQ(kSmall.block_bytes(), 4096u);  // 3072, in whole sectors.
  EXPECT_EQ(kSmall.Describe(), "kv1 f16 layers=2 kv_heads=3 head_dim=8 block_tokens=16 tile=16");
}

TEST(KvPool, GivesOutEveryBlockOnceAndThenNone) {
  KvPool pool(kSmall, 3);
  EXPECT_EQ(pool.Allocate()->value, 0u);
  EXPECT_EQ(pool.Allocate()->value, 1u);
  EXPECT_EQ(pool.Allocate()->value, 2u);
  EXPECT_EQ(pool.Allocate(), std::nullopt);
  pool.Release({1});
  EXPECT_EQ(pool.Allocate()->value, 1u);
}

TEST(KvPool, KeepsASharedBlockUntilTheLastHolderReleasesIt) {
  KvPool pool(kSmall, 1);
  const BlockIndex block = *pool.Allocate();
  pool.AddReference(block);
  pool.Release(block);
  EXPECT_EQ(pool.free_count(), 0u);
  pool.Release(block);
  EXPECT_EQ(pool.free_count(), 1u);
}

TEST(KvPool, BlocksAreAlignedAndApart) {
  KvPool pool(kSmall, 4);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(pool.bytes({i}).size(), kSmall.block_bytes());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pool.bytes({i}).data()) % kv::kSectorSize, 0u);
    EXPECT_EQ(pool.bytes({i}).data() - pool.memory().data(),
              static_cast<ptrdiff_t>(i * kSmall.block_bytes()));
  }
}

TEST(KvPoolDeathTest, ReleasingAFreeBlockStopsTheProcess) {
  KvPool pool(kSmall, 1);
  EXPECT_DEATH(pool.Release({0}), "check failed");
}

}  // namespace
}  // namespace cairn::engine
