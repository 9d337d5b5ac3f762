// An age below which shards are cold, and the segments that hold the fewest bytes above it.
#include "kvstore/node/reclaim_plan.h"

#include <algorithm>
#include <tuple>

namespace cairn::kv {
namespace {

using Fate = ShardView::Fate;

// Older first; at equal age suffixes before prefixes.
bool IsColder(const ShardView& a, const ShardView& b) {
  return std::tuple(a.last_access, ~a.position, a.stripe) <
         std::tuple(b.last_access, ~b.position, b.stripe);
}

uint64_t MeanSize(const SegmentView& segment) {
  return segment.shards.empty() ? 0 : segment.live_bytes / segment.shards.size();
}

bool HasFate(const SegmentView& segment, Fate fate) {
  return std::any_of(segment.shards.begin(), segment.shards.end(),
                     [fate](const ShardView& shard) { return shard.fate == fate; });
}

SegmentReclaim Sort(const SegmentView& segment) {
  SegmentReclaim reclaim{.segment = segment.id, .expired = {}, .dead = {}, .evict = {}, .move = {}};
  for (const ShardView& shard : segment.shards) {
    if (shard.fate == Fate::kDead) reclaim.dead.push_back(shard.stripe);
    if (shard.fate == Fate::kExpired) reclaim.expired.push_back(shard.stripe);
  }
  return reclaim;
}

// The warmest of the coldest shards that together have `bytes`, or nothing to keep at all.
struct Cutoff {
  bool everything = false;
  ShardView shard;
  bool IsCold(const ShardView& other) const { return everything || !IsColder(shard, other); }
};

Cutoff FindCutoff(std::span<const SegmentView* const> segments, uint64_t bytes) {
  std::vector<std::pair<ShardView, uint64_t>> live;
  for (const SegmentView* segment : segments) {
    for (const ShardView& shard : segment->shards) {
      if (shard.fate == Fate::kLive) live.emplace_back(shard, MeanSize(*segment));
    }
  }
  std::sort(live.begin(), live.end(),
            [](const auto& a, const auto& b) { return IsColder(a.first, b.first); });
  uint64_t sum = 0;
  for (const auto& [shard, size] : live) {
    sum += size;
    if (sum >= bytes) return {.everything = false, .shard = shard};
  }
  return {.everything = true, .shard = {}};
}

uint64_t WarmBytes(const SegmentView& segment, const Cutoff& cutoff) {
  const auto warm = std::count_if(
      segment.shards.begin(), segment.shards.end(),
      [&](const ShardView& shard) {
        return shard.fate == Fate::kHeld ||
               (shard.fate == Fate::kLive && !cutoff.IsCold(shard));
      });
  return static_cast<uint64_t>(warm) * MeanSize(segment);
}

}  // namespace

std::vector<SegmentReclaim> PlanReclaim(std::span<const SegmentView> sealed, ReclaimLimits limits) {
  std::vector<SegmentReclaim> plan;
  std::vector<const SegmentView*> rest;
  uint64_t freed = 0;
  for (const SegmentView& segment : sealed) {
    if (HasFate(segment, Fate::kPinned)) continue;
    if (HasFate(segment, Fate::kLive) || HasFate(segment, Fate::kHeld)) {
      rest.push_back(&segment);
      continue;
    }
    plan.push_back(Sort(segment));
    freed += segment.used_bytes;
  }
  if (freed >= limits.bytes_wanted || rest.empty()) return plan;

  const Cutoff cutoff = FindCutoff(rest, limits.bytes_wanted - freed);
  std::vector<std::pair<uint64_t, const SegmentView*>> by_warmth;
  for (const SegmentView* segment : rest) {
    by_warmth.emplace_back(WarmBytes(*segment, cutoff), segment);
  }
  std::sort(by_warmth.begin(), by_warmth.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.first, a.second->id) < std::tuple(b.first, b.second->id);
  });
  uint64_t moved = 0;
  for (const auto& [warm, segment] : by_warmth) {
    if (freed >= limits.bytes_wanted) break;
    SegmentReclaim reclaim = Sort(*segment);
    const uint64_t size = MeanSize(*segment);
    uint64_t kept = 0;
    for (const ShardView& shard : segment->shards) {
      if (shard.fate != Fate::kLive && shard.fate != Fate::kHeld) continue;
      const bool is_warm = !cutoff.IsCold(shard) && moved + size <= limits.move_bytes_max;
      if (shard.fate == Fate::kHeld || is_warm) {
        reclaim.move.push_back(shard.stripe);
        moved += size;
        kept += size;
      } else {
        reclaim.evict.push_back(shard.stripe);
      }
    }
    freed += segment->used_bytes - std::min(kept, segment->used_bytes);
    plan.push_back(std::move(reclaim));
  }
  return plan;
}

}  // namespace cairn::kv
