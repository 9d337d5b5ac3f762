// Blocks in memory: exact, bounded, and gone when their time is over.
#include "kvstore/cache/memory_blocks.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "kvstore/base/checksum.h"
#include "kvstore/base/random.h"
#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using testing::HasCode;
using testing::IsOk;

MemoryBlocks::Key KeyOf(uint64_t space, uint64_t id) {
  return {NamespaceId{{0, space}}, BlockId{{0, id}}};
}

Bytes BytesOf(const MemoryBlocks::Key& key, uint64_t size) {
  Bytes bytes(size);
  Random random(key.id.low * 31 + key.space.low);
  random.Fill(bytes.span());
  return bytes;
}

Status Put(MemoryBlocks& blocks, const MemoryBlocks::Key& key, uint64_t size, uint32_t ttl,
           UnixMillis now) {
  const Bytes bytes = BytesOf(key, size);
  const std::array<ByteSpan, 2> parts{bytes.span().first(size / 3), bytes.span().subspan(size / 3)};
  return blocks.Put(key, parts, ttl, now);
}

bool HasExactly(const MemoryBlocks& blocks, const MemoryBlocks::Key& key, UnixMillis now) {
  const auto info = blocks.Find(key, now);
  if (!info) return false;
  Bytes out(info->size);
  blocks.CopyOut(key, 0, out.span());
  const Bytes wanted = BytesOf(key, info->size);
  return std::equal(out.span().begin(), out.span().end(), wanted.span().begin()) &&
         info->checksum == Checksum(wanted.span());
}

TEST(MemoryBlocks, KeepsWhatWasPutUntilItExpires) {
  MemoryBlocks blocks(kMiB);
  EXPECT_THAT(Put(blocks, KeyOf(1, 1), 50'001, 180, {1'000}), IsOk());
  EXPECT_TRUE(HasExactly(blocks, KeyOf(1, 1), {180'999}));
  EXPECT_FALSE(blocks.Find(KeyOf(1, 1), {181'000}));
  EXPECT_FALSE(blocks.Find(KeyOf(2, 1), {1'000}));
  EXPECT_EQ(blocks.Purge({181'000}), 1u);
  EXPECT_EQ(blocks.size(), 0u);
}

TEST(MemoryBlocks, AHitProlongsOnlyWhereItShould) {
  MemoryBlocks blocks(kMiB);
  EXPECT_THAT(Put(blocks, KeyOf(1, 1), 100, 10, {0}), IsOk());
  EXPECT_THAT(Put(blocks, KeyOf(1, 2), 100, 10, {0}), IsOk());
  blocks.Touch(KeyOf(1, 1), true, {5'000});
  blocks.Touch(KeyOf(1, 2), false, {5'000});
  EXPECT_TRUE(HasExactly(blocks, KeyOf(1, 1), {14'999}));
  EXPECT_FALSE(blocks.Find(KeyOf(1, 2), {14'999}));
}

TEST(MemoryBlocks, TheFirstWriterWinsUntilItExpires) {
  MemoryBlocks blocks(kMiB);
  EXPECT_THAT(Put(blocks, KeyOf(1, 1), 100, 10, {0}), IsOk());
  EXPECT_THAT(Put(blocks, KeyOf(1, 1), 200, 10, {1'000}), IsOk());
  EXPECT_EQ(blocks.Find(KeyOf(1, 1), {1'000})->size, 100u);
  EXPECT_THAT(Put(blocks, KeyOf(1, 1), 200, 10, {20'000}), IsOk());
  EXPECT_EQ(blocks.Find(KeyOf(1, 1), {20'000})->size, 200u);
}

TEST(MemoryBlocks, DropsTheExpiredFirstThenTheLeastUsed) {
  MemoryBlocks blocks(4 * ChunkArena::kChunkSize);
  for (uint64_t id = 0; id < 4; ++id) {
    EXPECT_THAT(Put(blocks, KeyOf(1, id), 10'000, id == 3 ? 1 : 100, {0}), IsOk());
  }
  blocks.Touch(KeyOf(1, 0), true, {500});
  EXPECT_THAT(Put(blocks, KeyOf(1, 4), 10'000, 100, {2'000}), IsOk());
  EXPECT_EQ(blocks.evictions(), 0u);  // Block 3 had expired.
  EXPECT_THAT(Put(blocks, KeyOf(1, 5), 10'000, 100, {2'000}), IsOk());
  EXPECT_EQ(blocks.evictions(), 1u);
  EXPECT_TRUE(HasExactly(blocks, KeyOf(1, 0), {2'000}));
  EXPECT_FALSE(blocks.Find(KeyOf(1, 1), {2'000}));
  EXPECT_THAT(Put(blocks, KeyOf(1, 6), 70'000, 100, {2'000}), HasCode(Code::kNoSpace));
  EXPECT_TRUE(HasExactly(blocks, KeyOf(1, 5), {2'000}));
}

TEST(MemoryBlocks, ASpaceIsErasedAloneAndWhole) {
  MemoryBlocks blocks(kMiB);
  for (uint64_t id = 0; id < 5; ++id) {
    for (uint64_t space = 1; space <= 3; ++space) {
      EXPECT_THAT(Put(blocks, KeyOf(space, id), 100, 10, {0}), IsOk());
    }
  }
  blocks.EraseSpace(NamespaceId{{0, 2}});
  EXPECT_EQ(blocks.size(), 10u);
  EXPECT_FALSE(blocks.Find(KeyOf(2, 3), {0}));
  EXPECT_TRUE(HasExactly(blocks, KeyOf(3, 3), {0}));
  EXPECT_TRUE(blocks.Erase(KeyOf(3, 3)));
  EXPECT_FALSE(blocks.Erase(KeyOf(3, 3)));
}

TEST(MemoryBlocks, NeverHoldsMoreThanItMayAndNeverOtherBytes) {
  MemoryBlocks blocks(kMiB);
  Random random(3);
  UnixMillis now{0};
  for (int step = 0; step < 5'000; ++step) {
    now.value += static_cast<int64_t>(random.Below(50));
    const MemoryBlocks::Key key = KeyOf(random.Below(3), random.Below(60));
    const uint64_t size = 1 + (key.id.low * 7919) % 90'000;
    if (random.Chance(1, 10)) {
      blocks.Erase(key);
    } else {
      ASSERT_THAT(Put(blocks, key, size, 1 + static_cast<uint32_t>(random.Below(3)), now), IsOk());
      ASSERT_TRUE(HasExactly(blocks, key, now));
    }
    ASSERT_LE(blocks.memory_bytes(), kMiB + blocks.size() * 256);
  }
  EXPECT_GT(blocks.evictions(), 0u);
}

}  // namespace
}  // namespace cairn::kv
