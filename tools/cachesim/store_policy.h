// The store in small: stripes of a run in the segments of each target, TTL classes, and the store's
// own reclaim planner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kvstore/base/random.h"
#include "kvstore/base/result.h"
#include "kvstore/client/target_choice.h"
#include "kvstore/reclaim/reclaim_plan.h"
#include "tools/cachesim/access.h"
#include "tools/cachesim/block_table.h"

namespace cairn::tools {

struct RetentionClass {
  std::string name;
  int64_t ttl_ms = 0;
  bool refresh_on_hit = true;
};

struct StorePolicyOptions {
  uint64_t capacity_bytes = 0;  // Physical, over all targets.
  // Stripes lie on as many of these as they have shards. 1: one pool that takes whole stripes,
  // which is twelve times as fast, and a bit too good.
  uint32_t targets = 1;
  uint64_t segment_bytes = 0;  // Of one target.
  uint64_t block_tokens = 256;
  double bytes_per_token = 0;
  uint32_t run_blocks = 64;
  uint32_t data_shards = 10;
  uint32_t parity_shards = 2;
  uint64_t payload_bytes_max = 0;     // Of a stripe; a run with more has several. 0: no limit.
  uint64_t shard_bytes_min = 65536;   // A stripe is as wide as its shards stay above this.
  uint64_t record_bytes = 4096;       // A shard is padded to a multiple of this.
  uint64_t header_bytes = 0;          // So is what comes before it, its manifest. 0: there is none.
  uint32_t free_percent_min = 1;      // As kv::ReclaimerOptions.
  uint32_t move_percent_max = 30;
  std::vector<RetentionClass> classes;
};

struct StorePolicyCounts {
  uint64_t input_tokens = 0;
  uint64_t hit_tokens = 0;
  uint64_t stripes_written = 0;
  uint64_t stripes_expired = 0;  // Found expired, by a lookup or a reclaim.
  uint64_t stripes_evicted = 0;  // Dropped before their time.
  uint64_t shards_moved = 0;     // Because they were in recent use.
  uint64_t bytes_written = 0;    // Physical, first writes.
  uint64_t bytes_rewritten = 0;
  double payload_bytes_written = 0;

  double HitRate() const;
  double WriteAmplification() const;  // Flash writes / first writes.
};

// Where a store's bytes are, physical, over all targets. They add up to its capacity.
struct SpaceUse {
  double free = 0;      // Free segments, and the rest of open and sealed ones.
  double dead = 0;      // Garbage: records of stripes that are gone, or were moved.
  double overhead = 0;  // Of live stripes: headers, padding, and parity beyond that of a full one.
  double live = 0;      // Payload of live stripes, and its parity in stripes of full width.
};

class StorePolicy {
 public:
  // kInvalid names the option that is impossible.
  static kv::Result<StorePolicy> Create(StorePolicyOptions options);

  // `retention` indexes options.classes.
  void Add(const Access& access, size_t retention);
  const StorePolicyCounts& counts() const { return counts_; }
  // Of segments that are not free.
  uint64_t used_bytes() const;
  SpaceUse Space() const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kAsked = UINT32_MAX - 1;  // Missing, and about to be written.
  struct Place {
    uint32_t target = 0;
    uint32_t segment = 0;
  };
  struct Stripe {
    std::vector<uint32_t> blocks;
    std::vector<Place> places;  // Of its shards.
    uint64_t record_bytes = 0;
    int64_t expires_ms = 0;
    uint32_t last_access = 0;
    uint32_t position = 0;
    uint32_t retention = 0;
    bool hit = false;
    bool live = false;
    uint32_t generation = 0;  // Of the entry, which is used again.
  };
  struct Shard {
    uint32_t stripe = 0;
    uint32_t generation = 0;
  };
  struct Segment {
    std::vector<Shard> shards = {};  // Some of them dropped, or moved away.
    uint64_t used = 0;
    uint64_t taken = 0;  // Segments' worth of space; more than 1 for a record larger than one.
    bool sealed = false;
    bool free = true;
  };
  struct Target {
    std::vector<Segment> segments;
    std::vector<uint32_t> open;  // For puts by class, then for moves by class; kNone: none.
    uint64_t free_count = 0;
  };
  enum class Purpose { kPut, kMove };

  explicit StorePolicy(StorePolicyOptions options);
  uint64_t CountHits();
  void TouchAndWrite(uint32_t retention);
  // What is missing of one run of the chain, by positions in it.
  void WriteRun(const std::vector<uint32_t>& chain, const std::vector<uint32_t>& positions,
                uint32_t retention);
  void WriteStripe(std::vector<uint32_t> blocks, uint32_t position, uint32_t retention);
  // Width in shards, and the bytes of each one's record.
  std::pair<uint32_t, uint64_t> ShapeOf(uint64_t blocks) const;
  uint64_t HeaderBytes(uint64_t blocks, uint64_t data_shards, double payload) const;
  std::vector<kv::TargetId> ChooseTargets(uint32_t count);
  uint64_t RoomForPuts(const Target& target) const;
  // The segment, or kNone when none has room.
  uint32_t Append(Target& target, uint32_t stripe, Purpose purpose);
  bool TryAppend(Segment& segment, uint32_t stripe) const;
  uint32_t AppendAnywhere(Target& target, uint32_t stripe) const;
  void MakeRoom();
  void Reclaim(uint32_t target, uint64_t segments_wanted, uint64_t move_bytes_max);
  kv::ShardView ViewOf(uint32_t stripe) const;
  bool IsAt(const Shard& shard, Place place) const;
  bool Move(uint32_t stripe, Place from);
  void Drop(uint32_t stripe);
  uint64_t SegmentsFor(uint64_t bytes) const;

  StorePolicyOptions options_;
  kv::Random random_;
  BlockTable table_;
  std::vector<uint32_t> indexes_;
  std::vector<uint32_t> stripe_of_;  // By block; kNone = absent.
  std::vector<Stripe> stripes_;
  std::vector<uint32_t> spare_stripes_;  // Entries of stripes_ to be used again.
  std::vector<Target> targets_;
  kv::ReclaimPlanner planner_;
  kv::TargetChooser chooser_;
  int64_t now_ms_ = 0;
  uint32_t writing_ = kNone;  // Not to be reclaimed.
  StorePolicyCounts counts_;
};

}  // namespace cairn::tools
