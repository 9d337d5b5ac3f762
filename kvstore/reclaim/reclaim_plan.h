// Decides which segments of a target to free, and what becomes of the shards in them. Pure.
//
// Like LRU, but by segments: shards are ranked by age, those above a cutoff are hot, and the
// segments with the fewest hot bytes, and the most garbage, are freed. Their cold shards are
// evicted, their hot ones rewritten. The cutoff is a share of all bytes, and finds itself: when the
// segments that are freed turn out to hold more hot bytes than may be rewritten, it falls; when
// they hold fewer, it rises. So the cache is as near to LRU as the write amplification allows,
// whatever the workload. What was never used since it was put ages faster, and the more so the
// more of the store that is: where little is ever used again, most of it never will be.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cairn::kv {

struct ShardView {
  enum class Fate : uint8_t {
    kDead,  // In no index: garbage.
    kExpired,
    kLive,
    kHeld,    // Leased, or kept by promise: moved, never evicted.
    kPinned,  // Being put: its segment has to wait.
  };
  Fate fate = Fate::kLive;
  bool hit = false;          // Used since it was put.
  uint32_t last_access = 0;  // Seconds since 1970.
  uint32_t position = 0;     // Of its first block in the chain.
  uint64_t bytes = 0;        // Of the record.
};

struct SegmentView {
  uint64_t used_bytes = 0;
  std::vector<ShardView> shards = {};  // Those not dropped.
};

// One segment to free: its index in what was given to Plan, and those of its shards. In this order:
// move, then drop and evict, then free it. Shards that cannot be moved for lack of room are
// evicted, except those that are held: then the segment stays.
struct SegmentReclaim {
  size_t segment = 0;
  std::vector<uint32_t> move = {};  // Hottest first.
  std::vector<uint32_t> expired = {};
  std::vector<uint32_t> dead = {};
  std::vector<uint32_t> evict = {};
};

struct ReclaimNeed {
  uint64_t segments_wanted = 0;
  uint64_t move_bytes_max = 0;  // What may be rewritten, by all that was put so far.
  uint32_t now_seconds = 0;
};

// Of two live shards the one with the larger coldness goes first: older ones, those never used
// sooner than others, and at equal age suffixes before prefixes.
struct Coldness {
  uint64_t age = 0;  // In sixteenths of a second.
  uint32_t position = 0;
  auto operator<=>(const Coldness&) const = default;
};
// `unused_aging` is how many times faster a shard ages that was never used.
Coldness ColdnessOf(const ShardView& shard, uint32_t now_seconds, double unused_aging);

// How much may be rewritten, given what all targets of a planner have put and rewritten so far: at
// least `bytes_min` in all, a segment of each, so that a store that has just started does not evict
// what is hot.
uint64_t MoveBudget(uint64_t bytes_put, uint64_t bytes_moved, uint64_t bytes_min,
                    uint32_t move_percent_max);

// How many segments to free now: none while `free_count` is at least the watermark.
uint64_t SegmentsWanted(uint64_t segments, uint64_t free_count, uint32_t free_percent_min);

// One for all targets that hold shards of the same stripes, those of a store of one node, asked for
// one target after the other. With one each, what counts as hot differs between them, and a stripe
// lives only until the first of its targets thinks little of it; the rest is garbage on all others.
class ReclaimPlanner {
 public:
  // `segments` are all sealed segments of a target, or a fair sample of them. First those without
  // anything worth keeping, all of them; then, for the rest of `segments_wanted`, the least hot.
  std::vector<SegmentReclaim> Plan(std::span<const SegmentView> segments, const ReclaimNeed& need);

  // The share of all bytes that counts as hot now.
  double hot_share() const { return hot_share_; }
  double unused_aging() const { return unused_aging_; }

 private:
  struct Bytes {
    uint64_t hot = 0;
    uint64_t cold = 0;  // Alive.
  };

  Coldness ColdnessNow(const ShardView& shard, uint32_t now_seconds) const {
    return ColdnessOf(shard, now_seconds, unused_aging_);
  }
  // Live and held shards: held first, then the hottest.
  std::vector<uint32_t> ByHeat(const SegmentView& segment, uint32_t now_seconds) const;
  // Moves the share that is hot by what a freed segment, one of `segments`, held.
  void NoteFreed(const SegmentView& segment, uint64_t hot_bytes, size_t segments);
  void RefreshCutoff(std::span<const SegmentView> segments, uint32_t now_seconds);
  bool IsHot(const ShardView& shard, uint32_t now_seconds) const;
  Bytes BytesOf(const SegmentView& segment, uint32_t now_seconds) const;
  // What becomes of a segment's shards; `moved` is what is rewritten.
  SegmentReclaim Split(const SegmentView& segment, size_t index, uint64_t budget,
                       uint32_t now_seconds, uint64_t& moved) const;

  double hot_share_ = 0.8;
  double unused_aging_ = 1;
  std::optional<Coldness> cutoff_;   // The coldest that is hot; none: nothing is.
  uint64_t bytes_until_refresh_ = 0;  // Freed before the cutoff is found anew.
};

}  // namespace cairn::kv
