// Arithmetic of stripes: widths, offsets, pieces and sources.
#include "kvstore/client/stripe_plan.h"

#include <algorithm>

#include "kvstore/base/check.h"
#include "kvstore/types/limits.h"

namespace cairn::kv {
namespace {

constexpr uint64_t kShardsPerSegmentMin = 16;

}  // namespace

uint8_t WidthOf(uint64_t payload, uint8_t data_shards_max, uint64_t shard_size_max) {
  const uint64_t wanted = std::clamp<uint64_t>(payload / kShardPayloadMin, 1, data_shards_max);
  const uint64_t needed = DivCeil(payload, AlignDown(shard_size_max, kSectorSize));
  const uint64_t width = std::max(wanted, needed);
  return width > data_shards_max ? 0 : static_cast<uint8_t>(width);
}

uint64_t PreferredPayload(uint64_t shard_size_max, uint8_t data_shards) {
  const uint64_t shard = std::max(AlignDown(shard_size_max / kShardsPerSegmentMin, kSectorSize),
                                  kShardPayloadMin);
  return shard * data_shards;
}

StripeLayout LayOut(std::span<const uint32_t> sizes, uint8_t data_shards_max,
                    uint64_t shard_size_max) {
  StripeLayout layout;
  layout.offsets.reserve(sizes.size());
  uint64_t next = 0;
  for (const uint32_t size : sizes) {
    KV_CHECK(size > 0);
    layout.offsets.push_back(next);
    layout.payload = next + size;
    next = AlignUp(layout.payload, kSectorSize);
  }
  layout.data_shards = WidthOf(layout.payload, data_shards_max, shard_size_max);
  if (layout.data_shards == 0) return layout;
  layout.shard_size =
      static_cast<uint32_t>(AlignUp(DivCeil(layout.payload, layout.data_shards), kSectorSize));
  // Rounding up to sectors may leave the last shards empty: a narrower stripe holds the same.
  layout.data_shards = static_cast<uint8_t>(DivCeil(layout.payload, layout.shard_size));
  return layout;
}

std::vector<uint32_t> SplitIntoStripes(std::span<const uint32_t> sizes, uint64_t payload_max,
                                       uint32_t blocks_max) {
  std::vector<uint32_t> counts;
  uint64_t payload = 0;
  for (const uint32_t size : sizes) {
    const uint64_t grown = AlignUp(payload, kSectorSize) + size;
    if (counts.empty() || counts.back() == blocks_max || grown > payload_max) {
      counts.push_back(0);
      payload = size;
    } else {
      payload = grown;
    }
    ++counts.back();
  }
  return counts;
}

std::vector<Piece> PiecesOf(uint64_t offset, uint32_t size, uint32_t shard_size) {
  std::vector<Piece> pieces;
  uint32_t done = 0;
  while (done < size) {
    const uint64_t at = offset + done;
    const uint32_t shard_offset = static_cast<uint32_t>(at % shard_size);
    const uint32_t length = std::min(size - done, shard_size - shard_offset);
    pieces.push_back({.shard = {static_cast<uint8_t>(at / shard_size)},
                      .shard_offset = shard_offset,
                      .block_offset = done,
                      .size = length});
    done += length;
  }
  return pieces;
}

BlockPlan PlanBlock(const Manifest& manifest, size_t block) {
  size_t first_checksum = 0;
  for (size_t i = 0; i < block; ++i) {
    const ManifestBlock& before = manifest.blocks[i];
    const uint64_t first = before.offset / manifest.shard_size;
    const uint64_t last = (before.offset + before.size - 1) / manifest.shard_size;
    if (last > first) first_checksum += last - first + 1;
  }
  const ManifestBlock& wanted = manifest.blocks[block];
  BlockPlan plan;
  plan.pieces = PiecesOf(wanted.offset, wanted.size, manifest.shard_size);
  if (plan.pieces.size() == 1) {
    plan.checksums = {wanted.checksum};
    return plan;
  }
  KV_CHECK(first_checksum + plan.pieces.size() <= manifest.piece_checksums.size());
  const auto begin = manifest.piece_checksums.begin() + static_cast<ptrdiff_t>(first_checksum);
  plan.checksums.assign(begin, begin + static_cast<ptrdiff_t>(plan.pieces.size()));
  return plan;
}

ShardRange RangeOf(std::span<const Piece> failed) {
  KV_CHECK(!failed.empty());
  ShardRange range{failed[0].shard_offset, failed[0].shard_offset};
  for (const Piece& piece : failed) {
    range.begin = std::min(range.begin, piece.shard_offset);
    range.end = std::max(range.end, piece.shard_offset + piece.sectors_size());
  }
  return range;
}

bool Covers(const Piece& piece, const ShardRange& range) {
  return piece.shard_offset <= range.begin &&
         range.end <= piece.shard_offset + piece.sectors_size();
}

namespace {

// The bytes of shard [begin, end) as copies, in order.
std::vector<ShardSource::Copy> CopiesOf(const StripeLayout& layout,
                                        std::span<const Parts> blocks, uint64_t begin,
                                        uint64_t end) {
  std::vector<ShardSource::Copy> copies;
  // The first block that may reach into the shard is the last that starts at or before it.
  const auto after = std::upper_bound(layout.offsets.begin(), layout.offsets.end(), begin);
  for (size_t i = static_cast<size_t>(after - layout.offsets.begin()) - 1; i < blocks.size(); ++i) {
    const uint64_t offset = layout.offsets[i];
    if (offset >= end) break;
    const uint64_t from = std::max(begin, offset) - offset;
    ForEachPartIn(blocks[i], from, end - offset, [&](uint64_t at, ByteSpan part) {
      copies.push_back({static_cast<uint32_t>(offset + at - begin), part});
    });
  }
  return copies;
}

// Whether the copies are one run of memory that fills the shard and may be written as it is.
bool IsOneRun(const std::vector<ShardSource::Copy>& copies, uint32_t shard_size) {
  uint32_t reached = 0;
  for (const ShardSource::Copy& copy : copies) {
    if (copy.to != reached || copy.from.data() != copies[0].from.data() + reached) return false;
    reached += static_cast<uint32_t>(copy.from.size());
  }
  return reached == shard_size &&
         reinterpret_cast<uintptr_t>(copies[0].from.data()) % kSectorSize == 0;
}

}  // namespace

std::vector<ShardSource> SourcesOf(const StripeLayout& layout, std::span<const Parts> blocks) {
  std::vector<ShardSource> sources(layout.data_shards);
  for (uint64_t shard = 0; shard < layout.data_shards; ++shard) {
    const uint64_t begin = shard * layout.shard_size;
    ShardSource& source = sources[shard];
    source.copies = CopiesOf(layout, blocks, begin, begin + layout.shard_size);
    if (IsOneRun(source.copies, layout.shard_size)) {
      source.direct = source.copies[0].from.data();
      source.copies.clear();
    }
  }
  return sources;
}

}  // namespace cairn::kv
