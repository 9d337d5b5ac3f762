// Decides which segments of a target to free, and what becomes of the shards in them. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kvstore/segment/segment_log.h"

namespace cairn::kv {

struct ShardView {
  enum class Fate : uint8_t {
    kDead,  // In no index: garbage.
    kExpired,
    kLive,
    kHeld,    // Leased or promised to be kept: moved, whatever the budget, never evicted.
    kPinned,  // Being put: its segment has to wait.
  };
  StripeId stripe;
  Fate fate = Fate::kLive;
  uint32_t last_access = 0;  // Seconds since 1970.
  uint32_t position = 0;     // Of its first block in the chain.
};

struct SegmentView {
  SegmentId id;
  uint64_t used_bytes = 0;
  uint64_t live_bytes = 0;
  std::vector<ShardView> shards;  // Those not dropped.
};

// In this order: evict and drop, move, then free the segment.
struct SegmentReclaim {
  SegmentId segment;
  std::vector<StripeId> expired;
  std::vector<StripeId> dead;
  std::vector<StripeId> evict;
  std::vector<StripeId> move;
};

struct ReclaimLimits {
  uint64_t bytes_wanted = 0;
  uint64_t move_bytes_max = 0;  // What may be rewritten: the write-amplification budget.
};

// `sealed` are the target's sealed segments. First those without anything worth keeping; then, for
// the rest of `bytes_wanted`, those with the least that is live and recent. What is oldest by last
// access (and, at equal age, furthest from its chain's start) is evicted; the recent shards of a
// chosen segment are moved within the budget, and evicted beyond it.
std::vector<SegmentReclaim> PlanReclaim(std::span<const SegmentView> sealed, ReclaimLimits limits);

}  // namespace cairn::kv
