// Widths, layouts, pieces and sources, as values.
#include "kvstore/client/stripe_plan.h"

#include <gtest/gtest.h>

#include "kvstore/types/limits.h"

namespace cairn::kv {
namespace {

constexpr uint64_t kShardMax = 8 * kMiB;

TEST(StripePlan, WidthGrowsWithThePayload) {
  EXPECT_EQ(WidthOf(1, 10, kShardMax), 1);
  EXPECT_EQ(WidthOf(128 * kKiB - 1, 10, kShardMax), 1);
  EXPECT_EQ(WidthOf(128 * kKiB, 10, kShardMax), 2);
  EXPECT_EQ(WidthOf(640 * kKiB, 10, kShardMax), 10);
  EXPECT_EQ(WidthOf(64 * kMiB, 10, kShardMax), 10);
}

TEST(StripePlan, WidthGrowsWhenShardsWouldNotFitASegment) {
  EXPECT_EQ(WidthOf(64 * kKiB, 10, 16 * kKiB), 4);
  EXPECT_EQ(WidthOf(64 * kMiB, 10, 4 * kMiB), 0);
}

TEST(StripePlan, BlocksLieEndToEndFromSectorToSector) {
  const std::vector<uint32_t> sizes{1, 4096, 5000};
  const StripeLayout layout = LayOut(sizes, 10, kShardMax);
  EXPECT_EQ(layout.offsets, (std::vector<uint64_t>{0, 4096, 8192}));
  EXPECT_EQ(layout.payload, 8192u + 5000u);
  EXPECT_EQ(layout.data_shards, 1);
  EXPECT_EQ(layout.shard_size, 16384u);
}

TEST(StripePlan, LayoutHoldsThePayloadAndWastesLessThanASectorPerShard) {
  for (uint32_t size = 1; size < 2'000'000; size += 9973) {
    for (const uint8_t k : std::initializer_list<uint8_t>{1, 2, 4, 10, 32}) {
      const StripeLayout layout = LayOut(std::vector<uint32_t>{size}, k, kShardMax);
      ASSERT_GE(layout.data_shards, 1);
      ASSERT_LE(layout.data_shards, k);
      ASSERT_EQ(layout.shard_size % kSectorSize, 0u);
      const uint64_t room = uint64_t{layout.shard_size} * layout.data_shards;
      ASSERT_GE(room, size);
      ASSERT_LT(room - size, uint64_t{layout.shard_size});  // No shard is empty.
    }
  }
}

TEST(StripePlan, SplitsByBytesAndByCount) {
  const std::vector<uint32_t> sizes{4096, 4096, 4096, 20000, 1};
  EXPECT_EQ(SplitIntoStripes(sizes, 8192, 10), (std::vector<uint32_t>{2, 1, 1, 1}));
  EXPECT_EQ(SplitIntoStripes(sizes, kMiB, 2), (std::vector<uint32_t>{2, 2, 1}));
  EXPECT_EQ(SplitIntoStripes(sizes, kMiB, 256), (std::vector<uint32_t>{5}));
}

TEST(StripePlan, ABlockStraddlesShards) {
  const auto pieces = PiecesOf(4096, 12000, 8192);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0], (Piece{{0}, 4096, 0, 4096}));
  EXPECT_EQ(pieces[1], (Piece{{1}, 0, 4096, 7904}));
  EXPECT_EQ(pieces[1].sectors_size(), 8192u);
}

TEST(StripePlan, EachBlockFindsTheChecksumsOfItsPieces) {
  Manifest manifest;
  manifest.shard_size = 8192;
  manifest.blocks = {{.id = {}, .offset = 0, .size = 12288, .checksum = 1},
                     {.id = {}, .offset = 12288, .size = 4096, .checksum = 2},
                     {.id = {}, .offset = 16384, .size = 20000, .checksum = 3}};
  manifest.piece_checksums = {10, 11, 30, 31, 32};
  EXPECT_EQ(PlanBlock(manifest, 0).checksums, (std::vector<uint64_t>{10, 11}));
  EXPECT_EQ(PlanBlock(manifest, 1).checksums, (std::vector<uint64_t>{2}));
  EXPECT_EQ(PlanBlock(manifest, 2).checksums, (std::vector<uint64_t>{30, 31, 32}));
}

TEST(StripePlan, TheRangeToRebuildCoversEveryFailedPiece) {
  const std::vector<Piece> failed{{{0}, 8192, 0, 4096}, {{1}, 0, 4096, 5000}};
  EXPECT_EQ(RangeOf(failed), (ShardRange{0, 12288}));
}

TEST(StripePlan, TakesShardsStraightFromAlignedMemory) {
  const Bytes memory(64 * kKiB);
  const StripeLayout layout{
      .data_shards = 4, .shard_size = 16384, .payload = 65536, .offsets = {0, 32768}};
  const std::vector<ByteSpan> bytes{memory.span().first(32768), memory.span().subspan(32768)};
  const std::vector<Parts> blocks{{&bytes[0], 1}, {&bytes[1], 1}};
  const auto sources = SourcesOf(layout, blocks);
  ASSERT_EQ(sources.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(sources[i].direct, memory.data() + i * 16384);
}

TEST(StripePlan, CopiesWhereMemoryHasGapsOrEndsEarly) {
  const Bytes memory(64 * kKiB);
  const StripeLayout layout{
      .data_shards = 2, .shard_size = 8192, .payload = 9192, .offsets = {0, 8192}};
  const std::vector<ByteSpan> bytes{memory.span().first(5000), memory.span().subspan(8192, 1000)};
  const std::vector<Parts> blocks{{&bytes[0], 1}, {&bytes[1], 1}};
  const auto sources = SourcesOf(layout, blocks);
  ASSERT_EQ(sources.size(), 2u);
  EXPECT_EQ(sources[0].direct, nullptr);
  ASSERT_EQ(sources[0].copies.size(), 1u);
  EXPECT_EQ(sources[0].copies[0].from.size(), 5000u);
  ASSERT_EQ(sources[1].copies.size(), 1u);
  EXPECT_EQ(sources[1].copies[0].to, 0u);
  EXPECT_EQ(sources[1].copies[0].from.size(), 1000u);
}

TEST(StripePlan, ABlockInPartsIsTakenStraightWhereTheyAreWholeShards) {
  const Bytes memory(64 * kKiB);
  const StripeLayout layout{
      .data_shards = 3, .shard_size = 8192, .payload = 24'000, .offsets = {0}};
  const std::vector<ByteSpan> parts{memory.span().subspan(40'960, 8192),
                                    memory.span().subspan(4096, 5000),
                                    memory.span().subspan(16'384, 10'808)};
  const std::vector<Parts> blocks{parts};
  const auto sources = SourcesOf(layout, blocks);
  ASSERT_EQ(sources.size(), 3u);
  EXPECT_EQ(sources[0].direct, memory.data() + 40'960);
  EXPECT_EQ(sources[1].direct, nullptr);
  ASSERT_EQ(sources[1].copies.size(), 2u);
  EXPECT_EQ(sources[1].copies[1].to, 5000u);
  EXPECT_EQ(sources[1].copies[1].from.data(), memory.data() + 16'384);
  EXPECT_EQ(sources[1].copies[1].from.size(), 3192u);
  ASSERT_EQ(sources[2].copies.size(), 1u);
  EXPECT_EQ(sources[2].copies[0].from.data(), memory.data() + 16'384 + 3192);
  EXPECT_EQ(sources[2].copies[0].from.size(), 7616u);
}

}  // namespace
}  // namespace cairn::kv
