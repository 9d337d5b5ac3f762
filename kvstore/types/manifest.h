// The index record of a stripe: where its shards lie and which bytes of it are which block.
#pragma once

#include <cstdint>
#include <vector>

#include "kvstore/base/result.h"
#include "kvstore/base/time.h"
#include "kvstore/types/ids.h"

namespace cairn::kv {

// How long a stripe is kept. Refreshed: each hit moves the expiry to now + ttl.
enum class RetentionKind : uint8_t { kFixed = 0, kRefreshed = 1 };

struct Retention {
  RetentionKind kind = RetentionKind::kRefreshed;
  uint32_t ttl_seconds = 0;   // At least 1.
  UnixMillis expires_at;      // As of writing; a refreshed stripe's true expiry is in the index.
  auto operator<=>(const Retention&) const = default;
};

struct ManifestBlock {
  BlockId id;
  uint64_t offset = 0;    // In the stripe's payload. A multiple of kSectorSize.
  uint32_t size = 0;      // 1..kBlockSizeMax. The gap up to the next sector is zero.
  uint64_t checksum = 0;  // XXH3-64 of the block's bytes.
  auto operator<=>(const ManifestBlock&) const = default;
};

// Payload byte p lies on data shard p / shard_size, at offset p % shard_size. Immutable.
struct Manifest {
  StripeId stripe;
  NamespaceId space;
  RunId run;
  uint8_t code_id = 0;        // erasure::CodeId.
  uint8_t data_shards = 0;    // The stripe's own width k', not the namespace's k.
  uint8_t parity_shards = 0;
  uint16_t generation = 0;     // One more each time shards move to other targets; the higher wins.
  uint32_t shard_size = 0;    // Bytes, a multiple of kSectorSize.
  Retention retention;
  std::vector<TargetId> targets;      // data_shards + parity_shards of them; place i holds shard i.
  std::vector<ManifestBlock> blocks;  // By ascending offset.
  // For each block that lies on more than one shard, in block order: the XXH3-64 of each of its
  // pieces, by ascending shard. A block on one shard has its own checksum for this.
  std::vector<uint64_t> piece_checksums;

  auto operator<=>(const Manifest&) const = default;
  uint32_t shard_count() const { return uint32_t{data_shards} + parity_shards; }
};

// On how many shards the block lies: one or more, next to each other.
uint32_t PieceCount(const Manifest& manifest, const ManifestBlock& block);

// The byte layout of docs/formats/manifest.md, little-endian and versioned, ending in its own
// checksum. At most kManifestSizeMax.
Bytes EncodeManifest(const Manifest& manifest);

// kCorrupt when anything at all is wrong: length, checksum, order, overlap, counts, alignment.
Result<Manifest> DecodeManifest(ByteSpan bytes);

}  // namespace cairn::kv
