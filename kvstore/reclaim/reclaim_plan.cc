// The cutoff from the ages of all shards, victims by hot bytes, and the feedback on the cutoff.
#include "kvstore/reclaim/reclaim_plan.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace cairn::kv {
namespace {

using Fate = ShardView::Fate;

constexpr double kAgesPerSecond = 16;
// What was never used ages 1 + kUnusedAging times as fast where nothing live was used, and no
// faster than the rest where everything was.
constexpr double kUnusedAging = 1.5;
// Of a freed segment this share is hot on average: 0.22 / (1 - 0.22) = 28 % of what is put is
// rewritten.
constexpr double kHotAim = 0.22;
constexpr double kHotShareMin = 0.3;
constexpr double kHotShareMax = 0.94;
constexpr double kGain = 0.01;
constexpr double kGainOfAll = 0.25;  // In small stores one segment says more.
// A cold byte that is still alive costs this much of a hot one, garbage nothing: so targets follow
// each other, and free what the stripes that another one evicted have left here.
constexpr double kColdCost = 0.5;
// At most this share of a segment is rewritten, so that freeing one always gains something.
constexpr double kMoveShareMax = 0.75;
// The cutoff moves slowly: it is found anew this often while the bytes of one target are replaced
// once, on whichever of a planner's targets.
constexpr uint64_t kRefreshesPerTurnover = 64;
// One for moves, one for puts, one to free the next with: with two, small stores refused puts.
constexpr uint64_t kSegmentsFreeMin = 3;
// In large stores several segments are freed at once, which spares planning.
constexpr uint64_t kSegmentsPerStep = 1024;

bool Has(const SegmentView& segment, Fate fate) {
  return std::any_of(segment.shards.begin(), segment.shards.end(),
                     [fate](const ShardView& shard) { return shard.fate == fate; });
}

SegmentReclaim Sort(const SegmentView& segment, size_t index) {
  SegmentReclaim reclaim{.segment = index};
  for (uint32_t i = 0; i < segment.shards.size(); ++i) {
    if (segment.shards[i].fate == Fate::kDead) reclaim.dead.push_back(i);
    if (segment.shards[i].fate == Fate::kExpired) reclaim.expired.push_back(i);
  }
  return reclaim;
}

uint64_t HeldBytes(const SegmentView& segment) {
  uint64_t bytes = 0;
  for (const ShardView& shard : segment.shards) {
    if (shard.fate == Fate::kHeld) bytes += shard.bytes;
  }
  return bytes;
}

uint64_t MoveBytesMax(const SegmentView& segment) {
  return static_cast<uint64_t>(kMoveShareMax * static_cast<double>(segment.used_bytes));
}

// Of the bytes of live shards, those never used.
double UnusedShare(std::span<const SegmentView> segments) {
  double live = 0;
  double unused = 0;
  for (const SegmentView& segment : segments) {
    for (const ShardView& shard : segment.shards) {
      if (shard.fate != Fate::kLive) continue;
      live += static_cast<double>(shard.bytes);
      if (!shard.hit) unused += static_cast<double>(shard.bytes);
    }
  }
  return live > 0 ? unused / live : 0;
}

}  // namespace

Coldness ColdnessOf(const ShardView& shard, uint32_t now_seconds, double unused_aging) {
  const double seconds = now_seconds - std::min(now_seconds, shard.last_access);
  const double aging = shard.hit ? 1 : unused_aging;
  return {.age = static_cast<uint64_t>(kAgesPerSecond * aging * seconds),
          .position = shard.position};
}

uint64_t MoveBudget(uint64_t bytes_put, uint64_t bytes_moved, uint64_t bytes_min,
                    uint32_t move_percent_max) {
  const uint64_t granted = std::max(bytes_put / 100 * move_percent_max, bytes_min);
  return granted - std::min(granted, bytes_moved);
}

uint64_t SegmentsWanted(uint64_t segments, uint64_t free_count, uint32_t free_percent_min) {
  const uint64_t low = std::max(kSegmentsFreeMin, segments * free_percent_min / 100);
  return free_count >= low ? 0 : low - free_count + segments / kSegmentsPerStep;
}

void ReclaimPlanner::RefreshCutoff(std::span<const SegmentView> segments, uint32_t now_seconds) {
  unused_aging_ = 1 + kUnusedAging * UnusedShare(segments);
  std::vector<std::pair<Coldness, uint64_t>> live;
  uint64_t used = 0;
  double room = 0;
  for (const SegmentView& segment : segments) {
    used += segment.used_bytes;
    room += hot_share_ * static_cast<double>(segment.used_bytes);
    for (const ShardView& shard : segment.shards) {
      if (shard.fate == Fate::kHeld) room -= static_cast<double>(shard.bytes);
      if (shard.fate != Fate::kLive) continue;
      live.emplace_back(ColdnessNow(shard, now_seconds), shard.bytes);
    }
  }
  std::sort(live.begin(), live.end());
  cutoff_.reset();
  for (const auto& [coldness, bytes] : live) {
    room -= static_cast<double>(bytes);
    if (room < 0) break;
    cutoff_ = coldness;
  }
  bytes_until_refresh_ = used / kRefreshesPerTurnover;
}

bool ReclaimPlanner::IsHot(const ShardView& shard, uint32_t now_seconds) const {
  if (shard.fate == Fate::kHeld) return true;
  return shard.fate == Fate::kLive && cutoff_ && ColdnessNow(shard, now_seconds) <= *cutoff_;
}

ReclaimPlanner::Bytes ReclaimPlanner::BytesOf(const SegmentView& segment,
                                              uint32_t now_seconds) const {
  Bytes bytes;
  for (const ShardView& shard : segment.shards) {
    if (IsHot(shard, now_seconds)) {
      bytes.hot += shard.bytes;
    } else if (shard.fate == Fate::kLive) {
      bytes.cold += shard.bytes;
    }
  }
  return bytes;
}

std::vector<uint32_t> ReclaimPlanner::ByHeat(const SegmentView& segment,
                                             uint32_t now_seconds) const {
  std::vector<std::pair<std::tuple<bool, Coldness>, uint32_t>> ranked;
  for (uint32_t i = 0; i < segment.shards.size(); ++i) {
    const ShardView& shard = segment.shards[i];
    if (shard.fate != Fate::kLive && shard.fate != Fate::kHeld) continue;
    const bool held = shard.fate == Fate::kHeld;
    ranked.push_back({{!held, ColdnessNow(shard, now_seconds)}, i});
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<uint32_t> order;
  for (const auto& [rank, index] : ranked) order.push_back(index);
  return order;
}

SegmentReclaim ReclaimPlanner::Split(const SegmentView& segment, size_t index, uint64_t budget,
                                     uint32_t now_seconds, uint64_t& moved) const {
  SegmentReclaim reclaim = Sort(segment, index);
  const uint64_t room = std::min(MoveBytesMax(segment), budget);
  moved = 0;
  for (const uint32_t i : ByHeat(segment, now_seconds)) {
    const ShardView& shard = segment.shards[i];
    const bool affordable = moved + shard.bytes <= room;
    const bool stays =
        shard.fate == Fate::kHeld || (affordable && IsHot(shard, now_seconds));
    (stays ? reclaim.move : reclaim.evict).push_back(i);
    if (stays) moved += shard.bytes;
  }
  return reclaim;
}

std::vector<SegmentReclaim> ReclaimPlanner::Plan(std::span<const SegmentView> segments,
                                                 const ReclaimNeed& need) {
  std::vector<SegmentReclaim> plan;
  std::vector<size_t> rest;
  for (size_t i = 0; i < segments.size(); ++i) {
    const SegmentView& segment = segments[i];
    if (Has(segment, Fate::kPinned) || HeldBytes(segment) > MoveBytesMax(segment)) continue;
    if (Has(segment, Fate::kLive) || Has(segment, Fate::kHeld)) {
      rest.push_back(i);
      continue;
    }
    plan.push_back(Sort(segment, i));
    NoteFreed(segment, 0, segments.size());
  }
  if (plan.size() >= need.segments_wanted || rest.empty()) return plan;

  if (bytes_until_refresh_ == 0) RefreshCutoff(segments, need.now_seconds);
  std::vector<std::pair<double, size_t>> by_cost;
  for (const size_t i : rest) {
    const Bytes bytes = BytesOf(segments[i], need.now_seconds);
    const double cost =
        static_cast<double>(bytes.hot) + kColdCost * static_cast<double>(bytes.cold);
    by_cost.emplace_back(cost, i);
  }
  std::sort(by_cost.begin(), by_cost.end());
  uint64_t budget = need.move_bytes_max;
  for (const auto& [cost, index] : by_cost) {
    if (plan.size() >= need.segments_wanted) break;
    const SegmentView& segment = segments[index];
    uint64_t moved = 0;
    plan.push_back(Split(segment, index, budget, need.now_seconds, moved));
    budget -= std::min(budget, moved);
    NoteFreed(segment, BytesOf(segment, need.now_seconds).hot, segments.size());
  }
  return plan;
}

void ReclaimPlanner::NoteFreed(const SegmentView& segment, uint64_t hot_bytes, size_t segments) {
  bytes_until_refresh_ -= std::min(bytes_until_refresh_, segment.used_bytes);
  const double used = std::max(1.0, static_cast<double>(segment.used_bytes));
  const double gain = std::max(kGain, kGainOfAll / static_cast<double>(segments));
  hot_share_ += gain * (kHotAim - static_cast<double>(hot_bytes) / used);
  hot_share_ = std::clamp(hot_share_, kHotShareMin, kHotShareMax);
}

}  // namespace cairn::kv
