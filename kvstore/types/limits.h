// Every limit of the store, with the relations between them.
#pragma once

#include <cstdint>

#include "kvstore/base/units.h"

namespace cairn::kv {

inline constexpr uint64_t kKeySizeMax = 512;
inline constexpr uint64_t kBlockSizeMax = 64 * kMiB;
// What one stripe may hold: one largest block, or many small ones.
inline constexpr uint64_t kStripePayloadMax = 64 * kMiB;
inline constexpr uint32_t kStripeBlocksMax = 256;
inline constexpr uint32_t kDataShardsMax = 32;
inline constexpr uint32_t kParityShardsMax = 8;
inline constexpr uint32_t kShardsMax = kDataShardsMax + kParityShardsMax;
// A stripe gets one data shard per this much payload, up to k: see docs/architecture.md.
inline constexpr uint64_t kShardPayloadMin = 64 * kKiB;
inline constexpr uint32_t kRunBlocksDefault = 64;
inline constexpr uint32_t kIndexReplicas = 3;
inline constexpr uint64_t kSegmentSizeDefault = 64 * kMiB;
inline constexpr uint64_t kSegmentSizeMin = 4 * kMiB;
inline constexpr uint64_t kSegmentSizeMax = 1 * kGiB;
// Of one target: 256 TiB of default segments.
inline constexpr uint32_t kSegmentsMax = 1 << 22;
// With fewer segments than this a target has no open segment of its own for moves.
inline constexpr uint64_t kSegmentsForOwnMoves = 64;
inline constexpr uint64_t kManifestSizeMax = 48 * kKiB;
inline constexpr uint32_t kScatterMax = 2048;  // Segments of memory for one block.
inline constexpr uint32_t kLeaseSecondsMax = 600;

static_assert(kBlockSizeMax <= kStripePayloadMax);
static_assert(kRunBlocksDefault <= kStripeBlocksMax);

}  // namespace cairn::kv
