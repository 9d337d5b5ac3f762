// Lays blocks into a stripe and tells which bytes of which shards a block needs. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kvstore/base/bytes.h"
#include "kvstore/client/gather.h"
#include "kvstore/types/ids.h"
#include "kvstore/types/manifest.h"

namespace cairn::kv {

// A stripe of `payload` bytes: blocks end to end, each from a sector boundary.
struct StripeLayout {
  uint8_t data_shards = 0;
  uint32_t shard_size = 0;        // A multiple of kSectorSize.
  uint64_t payload = 0;           // Up to the last block's last byte.
  std::vector<uint64_t> offsets;  // Of each block.
};

// One data shard per 64 KiB of payload, at least 1, at most `data_shards_max`; and never so few
// that a shard is larger than `shard_size_max`. Zero when even `data_shards_max` are too few.
uint8_t WidthOf(uint64_t payload, uint8_t data_shards_max, uint64_t shard_size_max);

// What a run's blocks are cut into: stripes whose shards are at most a sixteenth of the largest
// that a segment can take (but 64 KiB), so that records fill segments well. A larger block has its
// own stripe.
uint64_t PreferredPayload(uint64_t shard_size_max, uint8_t data_shards);

// `sizes` is not empty; every size is at least 1. data_shards is 0 when it does not fit.
StripeLayout LayOut(std::span<const uint32_t> sizes, uint8_t data_shards_max,
                    uint64_t shard_size_max);

// Splits blocks in order into stripes of at most `payload_max` bytes and `blocks_max` blocks:
// the number of blocks of each. A block larger than `payload_max` gets its own.
std::vector<uint32_t> SplitIntoStripes(std::span<const uint32_t> sizes, uint64_t payload_max,
                                       uint32_t blocks_max);

// The part of a block that lies on one shard.
struct Piece {
  ShardIndex shard;
  uint32_t shard_offset = 0;  // Sector-aligned.
  uint32_t block_offset = 0;  // Sector-aligned.
  uint32_t size = 0;          // Of the block's own bytes.
  uint32_t sectors_size() const { return static_cast<uint32_t>(AlignUp(size, kSectorSize)); }
  auto operator<=>(const Piece&) const = default;
};
std::vector<Piece> PiecesOf(uint64_t offset, uint32_t size, uint32_t shard_size);

// Block i of the manifest: its pieces, and the checksum of each.
struct BlockPlan {
  std::vector<Piece> pieces;
  std::vector<uint64_t> checksums;
};
BlockPlan PlanBlock(const Manifest& manifest, size_t block);

// Bytes [begin, end) of each shard: what must be read to rebuild the failed pieces.
struct ShardRange {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t size() const { return end - begin; }
  auto operator<=>(const ShardRange&) const = default;
};
ShardRange RangeOf(std::span<const Piece> failed);
// Whether the range lies within the sectors of the piece.
bool Covers(const Piece& piece, const ShardRange& range);

// How the bytes of one data shard are put together from the callers' memory.
struct ShardSource {
  // Not null: the shard's bytes lie in one place, aligned, without a gap: no copy.
  const uint8_t* direct = nullptr;
  struct Copy {
    uint32_t to = 0;
    ByteSpan from;
  };
  std::vector<Copy> copies;  // Otherwise: what to copy over zeroes.
};
// Each block is given by its parts.
std::vector<ShardSource> SourcesOf(const StripeLayout& layout, std::span<const Parts> blocks);

}  // namespace cairn::kv
