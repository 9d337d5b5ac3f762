// Counters of one store, for people, tests and dashboards.
#pragma once

#include <array>
#include <cstdint>

#include "kvstore/client/block_store.h"

namespace cairn::kv {

inline constexpr size_t kMissReasons = 5;  // One per MissReason.

struct StoreStats {
  uint64_t puts = 0;         // Blocks asked to be stored.
  uint64_t puts_stored = 0;  // Blocks stored by this store's own writes.
  uint64_t puts_failed = 0;
  uint64_t stripes_written = 0;
  uint64_t stripes_degraded = 0;  // Of these, with fewer shards than they should have.
  uint64_t bytes_put = 0;         // Of blocks stored.
  uint64_t lookups = 0;
  uint64_t lookup_blocks = 0;                   // Asked for.
  uint64_t lookup_hits = 0;                     // Blocks found restorable.
  std::array<uint64_t, kMissReasons> misses{};  // By MissReason, of lookups that ended in a miss.
  uint64_t gets = 0;                            // Blocks asked for.
  uint64_t get_hits = 0;
  uint64_t get_misses = 0;
  uint64_t bytes_got = 0;
  uint64_t degraded_reads = 0;   // Blocks rebuilt from other shards.
  uint64_t corrupt_shards = 0;   // Seen by reads: a checksum failed.
  uint64_t missing_shards = 0;   // Seen by reads: a target did not have or give its shard.
  uint64_t evicted_stripes = 0;  // To make room.
  uint64_t expired_stripes = 0;
  uint64_t deleted_stripes = 0;
  uint64_t dropped_stripes = 0;      // Never published, or no longer restorable.
  uint64_t republished_stripes = 0;  // Found on the targets, missing in the index.
  // Write amplification = bytes_appended / (bytes_appended - bytes_moved), over all targets.
  uint64_t bytes_appended = 0;
  uint64_t bytes_moved = 0;
  uint64_t capacity_bytes = 0;
  uint64_t free_bytes = 0;
  uint64_t live_bytes = 0;
  uint64_t memory_bytes = 0;  // Pools, caches and tables: see kvstore/README.md.
};

}  // namespace cairn::kv
