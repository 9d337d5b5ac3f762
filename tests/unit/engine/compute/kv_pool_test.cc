// KV blocks are given out, shared and taken back; their layout is stated.
#include "engine/compute/kv_pool.h"

#include <gtest/gtest.h>

#include "kvstore/base/units.h"
#include "kvstore/layout/known_models.h"

namespace cairn::engine {
namespace {

constexpr PageLayout kSmall{.layers = 2, .kv_heads = 3, .head_dim = 8, .block_tokens = 16};

TEST(PageLayout, CountsBytesAndNamesItself) {
  EXPECT_EQ(kSmall.token_bytes(), 2u * 2 * 3 * 8 * 2);
  EXPECT_EQ(kSmall.block_bytes(), 4096u);  // 3072, in whole sectors.
  EXPECT_EQ(kSmall.Describe(), "kv1 f16 layers=2 kv_heads=3 head_dim=8 block_tokens=16 tile=16");
}

// Models with plain attention in half precision, as the engine runs them and as the planner counts
// them.
TEST(PageLayout, KeepsWhatTheLibraryOfModelsSays) {
  struct Case {
    const char* name;
    ModelShape shape;
    uint64_t token_bytes;
  };
  const auto shape_of = [](uint32_t layers, uint32_t kv_heads, uint32_t head_dim) {
    ModelShape shape;
    shape.layers = layers;
    shape.kv_heads = kv_heads;
    shape.head_dim = head_dim;
    return shape;
  };
  const Case cases[] = {{"SmolLM2-135M", shape_of(30, 3, 64), 23'040},
                        {"Llama-3-8B", shape_of(32, 8, 128), 131'072},
                        {"Qwen3-8B", shape_of(36, 8, 128), 147'456}};
  for (const Case& model : cases) {
    const kv::KvLayout library = kv::FindModel(model.name).value();
    for (const uint32_t block_tokens : {16u, 32u, 256u}) {
      const PageLayout page = PageLayout::For(model.shape, block_tokens);
      EXPECT_EQ(page.token_bytes(), model.token_bytes) << model.name;
      EXPECT_EQ(static_cast<double>(page.token_bytes()), library.BytesPerToken()) << model.name;
      const uint64_t block = library.BlockBytes(block_tokens);
      EXPECT_EQ(page.block_bytes(), kv::AlignUp(block, kv::kSectorSize)) << model.name;
    }
  }
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
