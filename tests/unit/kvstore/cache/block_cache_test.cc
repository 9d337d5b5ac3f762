// What is found is what was put in, within the limit, and never what has the wrong checksum.
#include "kvstore/cache/block_cache.h"

#include <gtest/gtest.h>

#include "kvstore/base/checksum.h"
#include "kvstore/base/random.h"

namespace cairn::kv {
namespace {

BlockCache::Key KeyOf(uint64_t stripe, uint32_t block) { return {StripeId{{1, stripe}}, block}; }

Bytes BytesOf(const BlockCache::Key& key, uint64_t size) {
  Bytes bytes(size);
  Random random(key.stripe.low * 1000 + key.block);
  random.Fill(bytes.span());
  return bytes;
}

void Fill(BlockCache& cache, const BlockCache::Key& key, uint64_t size) {
  const Bytes bytes = BytesOf(key, size);
  cache.Fill(key, bytes.span(), Checksum(bytes.span()));
}

bool HasExactly(BlockCache& cache, const BlockCache::Key& key, uint64_t size) {
  const BlockCache::Block* block = cache.Find(key);
  if (block == nullptr || block->size() != size) return false;
  Bytes out(size);
  cache.CopyOut(*block, 0, out.span());
  const Bytes wanted = BytesOf(key, size);
  return std::equal(out.span().begin(), out.span().end(), wanted.span().begin());
}

TEST(BlockCache, ReturnsWhatWasFilledOfAnySize) {
  BlockCache cache({.bytes_max = 8 * kMiB});
  const uint64_t sizes[] = {1, 4095, 16 * kKiB, 16 * kKiB + 1, 1'000'000};
  for (uint32_t i = 0; i < 5; ++i) Fill(cache, KeyOf(7, i), sizes[i]);
  for (uint32_t i = 0; i < 5; ++i) EXPECT_TRUE(HasExactly(cache, KeyOf(7, i), sizes[i])) << i;
  EXPECT_EQ(cache.Find(KeyOf(7, 5)), nullptr);
  EXPECT_EQ(cache.Find(KeyOf(8, 0)), nullptr);
  EXPECT_EQ(cache.stats().hits, 5u);
  EXPECT_EQ(cache.stats().misses, 2u);
}

TEST(BlockCache, KeepsWhatIsLentUntilItIsDropped) {
  BlockCache cache({.bytes_max = 4 * kMiB});
  Fill(cache, KeyOf(1, 0), kMiB - 5);
  auto lent = cache.Lend(KeyOf(1, 0));
  ASSERT_NE(lent, nullptr);
  EXPECT_EQ(cache.Lend(KeyOf(1, 1)), nullptr);
  for (uint32_t i = 0; i < 20; ++i) Fill(cache, KeyOf(2, i), kMiB);
  cache.Drop(StripeId{{1, 1}});
  const Bytes wanted = BytesOf(KeyOf(1, 0), kMiB - 5);
  uint64_t at = 0;
  for (const ByteSpan part : *lent) {
    ASSERT_TRUE(std::equal(part.begin(), part.end(), wanted.data() + at));
    at += part.size();
  }
  EXPECT_EQ(at, kMiB - 5);
  lent.reset();
  for (uint32_t i = 0; i < 4; ++i) Fill(cache, KeyOf(3, i), kMiB);
  uint32_t held = 0;
  for (uint32_t i = 0; i < 4; ++i) held += cache.Holds(KeyOf(3, i)) ? 1 : 0;
  EXPECT_EQ(held, 4u) << "its room is free again";
}

TEST(BlockCache, CopiesAnyPart) {
  BlockCache cache({.bytes_max = 8 * kMiB});
  const BlockCache::Key key = KeyOf(3, 3);
  Fill(cache, key, 100'000);
  const Bytes wanted = BytesOf(key, 100'000);
  Random random(1);
  const BlockCache::Block* block = cache.Find(key);
  ASSERT_NE(block, nullptr);
  for (int i = 0; i < 200; ++i) {
    const uint64_t offset = random.Below(100'000);
    const uint64_t size = random.Below(100'001 - offset);
    Bytes out(size);
    cache.CopyOut(*block, offset, out.span());
    ASSERT_TRUE(std::equal(out.span().begin(), out.span().end(), wanted.span().begin() +
                           static_cast<std::ptrdiff_t>(offset)));
  }
}

TEST(BlockCache, StaysWithinItsLimitAndKeepsBytesRight) {
  BlockCache cache({.bytes_max = kMiB});
  Random random(2);
  uint64_t found = 0;
  for (int i = 0; i < 5'000; ++i) {
    const BlockCache::Key key = KeyOf(random.Below(40), static_cast<uint32_t>(random.Below(4)));
    const uint64_t size = 1 + (key.stripe.low * 7919 + key.block * 104'729) % 100'000;
    if (cache.Find(key) == nullptr) {
      Fill(cache, key, size);
    } else {
      ++found;
    }
    ASSERT_TRUE(HasExactly(cache, key, size));
    if (random.Chance(1, 20)) cache.Drop(key.stripe);
  }
  EXPECT_GT(found, 0u);
  EXPECT_GT(cache.stats().evictions, 0u);
  EXPECT_LE(cache.memory_bytes(), 2 * kMiB);
}

TEST(BlockCache, TakesNothingWithAWrongChecksum) {
  BlockCache cache({.bytes_max = kMiB});
  const Bytes bytes = BytesOf(KeyOf(1, 1), 50'000);
  cache.Fill(KeyOf(1, 1), bytes.span(), Checksum(bytes.span()) ^ 1);
  EXPECT_EQ(cache.Find(KeyOf(1, 1)), nullptr);
  EXPECT_EQ(cache.stats().refused_fills, 1u);
  Fill(cache, KeyOf(1, 1), 50'000);
  EXPECT_TRUE(HasExactly(cache, KeyOf(1, 1), 50'000));
}

TEST(BlockCache, DropForgetsTheStripeAndNoOther) {
  BlockCache cache({.bytes_max = kMiB});
  for (uint32_t i = 0; i < 3; ++i) Fill(cache, KeyOf(1, i), 1'000);
  Fill(cache, KeyOf(2, 0), 1'000);
  cache.Drop(StripeId{{1, 1}});
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(cache.Find(KeyOf(1, i)), nullptr);
  EXPECT_TRUE(HasExactly(cache, KeyOf(2, 0), 1'000));
}

TEST(BlockCache, WantsABlockAtSecondSight) {
  BlockCache cache({.bytes_max = kMiB});
  EXPECT_FALSE(cache.Wants(KeyOf(1, 0), 1'000));
  EXPECT_TRUE(cache.Wants(KeyOf(1, 0), 1'000));
  BlockCache eager({.bytes_max = kMiB, .fill_at_first_sight = true});
  EXPECT_TRUE(eager.Wants(KeyOf(1, 0), 1'000));
}

TEST(BlockCache, KeepsNothingThatWouldDriveOutTheRest) {
  BlockCache cache({.bytes_max = kMiB});
  const BlockCache::Key key = KeyOf(1, 0);
  EXPECT_FALSE(cache.Wants(key, kMiB / 2));
  EXPECT_FALSE(cache.Wants(key, kMiB / 2));
  Fill(cache, key, kMiB / 2);
  EXPECT_EQ(cache.Find(key), nullptr);
}

TEST(BlockCache, WithoutRoomItDoesNothing) {
  BlockCache cache({.bytes_max = 0});
  EXPECT_FALSE(cache.Wants(KeyOf(1, 0), 1));
  EXPECT_FALSE(cache.Wants(KeyOf(1, 0), 1));
  Fill(cache, KeyOf(1, 0), 1);
  EXPECT_EQ(cache.Find(KeyOf(1, 0)), nullptr);
}

}  // namespace
}  // namespace cairn::kv
