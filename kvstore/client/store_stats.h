// Counters of one store, for people, tests and dashboards.
//
// A new counter is a field here and a line in VisitStats: the wire, JSON and metrics follow.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kvstore/client/block_store.h"

namespace cairn::kv {

inline constexpr size_t kMissReasons = 5;  // One per MissReason.

struct StoreStats {
  uint64_t puts = 0;         // Blocks asked to be stored.
  uint64_t puts_stored = 0;  // Blocks stored by this store's own writes.
  uint64_t puts_failed = 0;
  uint64_t puts_declined = 0;  // Blocks that the admission policy did not let in.
  uint64_t stripes_written = 0;
  uint64_t stripes_degraded = 0;  // Of these, with fewer shards than they should have.
  uint64_t shards_late = 0;       // That no put waited for: their targets are slow.
  uint64_t bytes_put = 0;         // Of blocks stored.
  uint64_t lookups = 0;
  uint64_t lookup_blocks = 0;                   // Asked for.
  uint64_t lookup_hits = 0;                     // Blocks found restorable.
  std::array<uint64_t, kMissReasons> misses{};  // By MissReason, of lookups that ended in a miss.
  uint64_t gets = 0;                            // Blocks asked for.
  uint64_t get_hits = 0;
  uint64_t get_misses = 0;
  uint64_t bytes_got = 0;
  uint64_t cache_hits = 0;       // Blocks served from memory.
  uint64_t cache_misses = 0;
  uint64_t cache_hit_bytes = 0;
  uint64_t shared_reads = 0;     // Blocks that waited for a read of the same block by another call.
  uint64_t hedges = 0;           // Blocks rebuilt because a shard was late.
  uint64_t hedges_won = 0;       // Of these, sooner than the late shard came.
  uint64_t degraded_reads = 0;   // Blocks rebuilt from other shards.
  uint64_t corrupt_shards = 0;   // Seen by reads: a checksum failed.
  uint64_t missing_shards = 0;   // Seen by reads: a target did not have or give its shard.
  uint64_t scrubbed_bytes = 0;       // Of shards that were read whole to verify them.
  uint64_t scrub_damaged = 0;        // Shards that were found damaged then.
  uint64_t shards_restored = 0;      // By scrub and repair.
  uint64_t shards_unrestorable = 0;  // Found lost with too much of their stripe.
  uint64_t stripes_lacking = 0;      // Written with fewer shards, and not known to be whole since.
  uint64_t evicted_stripes = 0;  // To make room.
  uint64_t expired_stripes = 0;
  uint64_t deleted_stripes = 0;
  uint64_t dropped_stripes = 0;      // Never published, or no longer restorable.
  uint64_t republished_stripes = 0;  // Found on the targets, missing in the index.
  uint64_t leases_granted = 0;
  uint64_t leases_refused = 0;  // A lookup that asked for one was answered without.
  uint64_t leases_expired = 0;  // Never released: their owners forgot them, or were slow.
  uint64_t leases_ended = 0;    // With their session.
  uint64_t leases_active = 0;
  uint64_t leased_bytes = 0;     // That they keep from being evicted.
  uint64_t kept_bytes = 0;       // Payload under a keep_until in the future.
  uint64_t quota_evictions = 0;  // Stripes, of evicted_stripes: their namespace was at its quota.
  // Write amplification = bytes_appended / (bytes_appended - bytes_moved), over all targets.
  uint64_t bytes_appended = 0;
  uint64_t bytes_moved = 0;
  uint64_t capacity_bytes = 0;
  uint64_t free_bytes = 0;
  uint64_t live_bytes = 0;
  uint64_t memory_bytes = 0;  // Pools, caches and tables: see kvstore/README.md.
};

enum class StatKind : uint8_t { kCounter, kGauge };

// visit(name, kind, field, help) for each counter, in a fixed order; `Stats` may be const. Names
// are stable: they are on the wire and in dashboards. A reason for misses is "misses_REASON".
template <typename Stats, typename Visit>
constexpr void VisitStats(Stats& stats, Visit&& visit) {
  constexpr auto kCounter = StatKind::kCounter;
  constexpr auto kGauge = StatKind::kGauge;
  constexpr std::array<std::string_view, kMissReasons> kMisses{
      "misses_none", "misses_absent", "misses_expired", "misses_evicted", "misses_unavailable"};
  visit("puts", kCounter, stats.puts, "Blocks asked to be stored.");
  visit("puts_stored", kCounter, stats.puts_stored, "Blocks stored.");
  visit("puts_failed", kCounter, stats.puts_failed, "Blocks that could not be stored.");
  visit("puts_declined", kCounter, stats.puts_declined, "Blocks not admitted by policy.");
  visit("stripes_written", kCounter, stats.stripes_written, "Stripes written.");
  visit("stripes_degraded", kCounter, stats.stripes_degraded, "Written with fewer shards.");
  visit("shards_late", kCounter, stats.shards_late,
        "Shards that no put waited for: their targets are slow.");
  visit("bytes_put", kCounter, stats.bytes_put, "Bytes of blocks stored.");
  visit("lookups", kCounter, stats.lookups, "Lookups.");
  visit("lookup_blocks", kCounter, stats.lookup_blocks, "Blocks asked for by lookups.");
  visit("lookup_hits", kCounter, stats.lookup_hits, "Blocks found restorable by lookups.");
  for (size_t i = 0; i < kMissReasons; ++i) {
    visit(kMisses[i], kCounter, stats.misses[i], "Lookups that ended in a miss for this reason.");
  }
  visit("gets", kCounter, stats.gets, "Blocks asked for by gets.");
  visit("get_hits", kCounter, stats.get_hits, "Blocks that gets returned.");
  visit("get_misses", kCounter, stats.get_misses, "Blocks that gets did not return.");
  visit("bytes_got", kCounter, stats.bytes_got, "Bytes that gets returned.");
  visit("cache_hits", kCounter, stats.cache_hits, "Blocks served from memory.");
  visit("cache_misses", kCounter, stats.cache_misses, "Blocks asked for that were not in memory.");
  visit("cache_hit_bytes", kCounter, stats.cache_hit_bytes, "Bytes served from memory.");
  visit("shared_reads", kCounter, stats.shared_reads, "Blocks that shared another call's read.");
  visit("hedges", kCounter, stats.hedges, "Blocks rebuilt because a shard was late.");
  visit("hedges_won", kCounter, stats.hedges_won, "Of these, sooner than the shard came.");
  visit("degraded_reads", kCounter, stats.degraded_reads, "Blocks rebuilt from other shards.");
  visit("corrupt_shards", kCounter, stats.corrupt_shards, "Shards that failed their checksum.");
  visit("missing_shards", kCounter, stats.missing_shards, "Shards that a target did not give.");
  visit("scrubbed_bytes", kCounter, stats.scrubbed_bytes, "Bytes of shards verified by scrub.");
  visit("scrub_damaged", kCounter, stats.scrub_damaged, "Shards that scrub found damaged.");
  visit("shards_restored", kCounter, stats.shards_restored, "Shards restored by scrub and repair.");
  visit("shards_unrestorable", kCounter, stats.shards_unrestorable, "Shards lost beyond parity.");
  visit("stripes_lacking", kGauge, stats.stripes_lacking, "Stripes to be given missing shards.");
  visit("evicted_stripes", kCounter, stats.evicted_stripes, "Stripes evicted to make room.");
  visit("expired_stripes", kCounter, stats.expired_stripes, "Stripes whose time was over.");
  visit("deleted_stripes", kCounter, stats.deleted_stripes, "Stripes deleted by callers.");
  visit("dropped_stripes", kCounter, stats.dropped_stripes, "Stripes no longer restorable.");
  visit("republished_stripes", kCounter, stats.republished_stripes, "Stripes filed again.");
  visit("leases_granted", kCounter, stats.leases_granted, "Leases given.");
  visit("leases_refused", kCounter, stats.leases_refused, "Leases refused: too much was leased.");
  visit("leases_expired", kCounter, stats.leases_expired, "Leases that nobody released in time.");
  visit("leases_ended", kCounter, stats.leases_ended, "Leases that ended with their session.");
  visit("leases_active", kGauge, stats.leases_active, "Leases now.");
  visit("leased_bytes", kGauge, stats.leased_bytes, "Bytes that leases protect from eviction.");
  visit("kept_bytes", kGauge, stats.kept_bytes, "Bytes under a keep_until in the future.");
  visit("quota_evictions", kCounter, stats.quota_evictions, "Stripes evicted at a quota.");
  visit("bytes_appended", kCounter, stats.bytes_appended, "Bytes written to targets.");
  visit("bytes_moved", kCounter, stats.bytes_moved, "Of these, rewritten by reclaim.");
  visit("capacity_bytes", kGauge, stats.capacity_bytes, "Bytes of all targets.");
  visit("free_bytes", kGauge, stats.free_bytes, "Bytes free on all targets.");
  visit("live_bytes", kGauge, stats.live_bytes, "Bytes of live shards.");
  visit("memory_bytes", kGauge, stats.memory_bytes, "Memory of pools, caches and tables.");
}

namespace internal {
constexpr size_t VisitedStats() {
  StoreStats stats;
  size_t count = 0;
  VisitStats(stats, [&count](auto&&...) { ++count; });
  return count;
}
}  // namespace internal
// A field without its line in VisitStats, or the other way round, does not compile.
static_assert(internal::VisitedStats() * sizeof(uint64_t) == sizeof(StoreStats));

}  // namespace cairn::kv
