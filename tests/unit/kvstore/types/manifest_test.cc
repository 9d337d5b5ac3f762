// The manifest's bytes: round trips, and every truncation and flip refused.
#include "kvstore/types/manifest.h"

#include <gtest/gtest.h>

#include "kvstore/base/random.h"
#include "kvstore/types/limits.h"
#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using ::cairn::testing::HasCode;

Id128 Draw(Random& random) {
  const uint64_t high = random.Next();
  return {high, random.Next()};
}

Manifest Sample(Random& random) {
  Manifest manifest;
  manifest.stripe = {Draw(random)};
  manifest.space = {Draw(random)};
  manifest.run = {Draw(random)};
  manifest.code_id = 1;
  manifest.data_shards = static_cast<uint8_t>(1 + random.Below(kDataShardsMax));
  manifest.parity_shards = static_cast<uint8_t>(random.Below(kParityShardsMax + 1));
  manifest.retention.ttl_seconds = static_cast<uint32_t>(1 + random.Below(1000000));
  manifest.retention.expires_at = {static_cast<int64_t>(random.Below(1ull << 45))};
  manifest.retention.kind = random.Chance(1, 2) ? RetentionKind::kFixed : RetentionKind::kRefreshed;
  for (uint32_t i = 0; i < manifest.shard_count(); ++i) {
    manifest.targets.push_back({random.Next()});
  }
  uint64_t end = 0;
  for (uint64_t i = 1 + random.Below(20); i > 0; --i) {
    ManifestBlock block;
    block.id = {Draw(random)};
    block.offset = AlignUp(end, kSectorSize);
    block.size = static_cast<uint32_t>(1 + random.Below(100000));
    block.checksum = random.Next();
    end = block.offset + block.size;
    manifest.blocks.push_back(block);
  }
  const uint64_t share = DivCeil(end, manifest.data_shards);
  manifest.shard_size = static_cast<uint32_t>(AlignUp(share, kSectorSize));
  for (const ManifestBlock& block : manifest.blocks) {
    const uint32_t pieces = PieceCount(manifest, block);
    for (uint32_t i = 0; pieces > 1 && i < pieces; ++i) {
      manifest.piece_checksums.push_back(random.Next());
    }
  }
  return manifest;
}

TEST(Manifest, RoundTripsWhateverItsShape) {
  Random random(1);
  for (int i = 0; i < 500; ++i) {
    const Manifest manifest = Sample(random);
    const Result<Manifest> decoded = DecodeManifest(EncodeManifest(manifest).span());
    ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
    EXPECT_EQ(decoded.value(), manifest);
  }
}

TEST(Manifest, RefusesEveryTruncationAndEveryFlippedBit) {
  Random random(2);
  Bytes bytes = EncodeManifest(Sample(random));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(DecodeManifest(bytes.span().first(size)), HasCode(Code::kCorrupt)) << size;
  }
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes.data()[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    EXPECT_THAT(DecodeManifest(bytes.span()), HasCode(Code::kCorrupt)) << bit;
    bytes.data()[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
  }
}

TEST(Manifest, TheLargestFitsItsLimit) {
  Random random(3);
  Manifest manifest = Sample(random);
  manifest.data_shards = kDataShardsMax;
  manifest.parity_shards = kParityShardsMax;
  manifest.targets.assign(kShardsMax, {7});
  manifest.shard_size = 64 * kKiB;
  manifest.blocks.clear();
  manifest.piece_checksums.clear();
  for (uint64_t i = 0; i < kStripeBlocksMax; ++i) {
    manifest.blocks.push_back({{Draw(random)}, i * kSectorSize, kSectorSize, 0});
  }
  EXPECT_LE(EncodeManifest(manifest).size(), kManifestSizeMax);
}

}  // namespace
}  // namespace cairn::kv
