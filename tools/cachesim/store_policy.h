// The store's own policy in small: stripes of a run in segments, TTL classes, reclaim by segment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvstore/base/result.h"
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
  uint64_t segment_bytes = 0;   // What is reclaimed at once: a segment of each target.
  uint64_t block_tokens = 256;
  double bytes_per_token = 0;
  uint32_t run_blocks = 64;
  uint32_t data_shards = 10;
  uint32_t parity_shards = 2;
  uint64_t shard_bytes_min = 65536;  // A stripe is as wide as its shards stay above this.
  uint64_t record_bytes = 4096;      // A shard's record is padded to a multiple of this.
  uint64_t record_overhead_bytes = 0;  // In front of each shard: its header and manifest.
  double watermark = 0.9;            // Reclaim starts above this share of the capacity.
  double keep_share = 0.8;           // Of the room, what reclaim counts as in recent use.
  double rewrite_share_max = 0.5;    // Of a reclaimed segment, at most this is appended again.
  // Whether a request refreshes blocks that are there behind its first miss, too.
  bool touch_beyond_prefix = true;
  std::vector<RetentionClass> classes;
};

struct StorePolicyCounts {
  uint64_t input_tokens = 0;
  uint64_t hit_tokens = 0;
  uint64_t stripes_written = 0;
  uint64_t stripes_expired = 0;    // Found expired, by a lookup or a reclaim.
  uint64_t stripes_evicted = 0;    // Dropped before their time.
  uint64_t stripes_rewritten = 0;  // Moved by reclaim because they were in recent use.
  double bytes_written = 0;        // Physical, first writes.
  double bytes_rewritten = 0;
  double payload_bytes_written = 0;

  double HitRate() const;
  double WriteAmplification() const;  // Flash writes / first writes.
};

class StorePolicy {
 public:
  // kInvalid names the option that is impossible.
  static kv::Result<StorePolicy> Create(StorePolicyOptions options);

  // `retention` indexes options.classes.
  void Add(const Access& access, size_t retention);
  const StorePolicyCounts& counts() const { return counts_; }
  double used_bytes() const { return used_bytes_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Stripe {
    std::vector<uint32_t> blocks;
    double bytes = 0;
    uint64_t recency = 0;
    int64_t expires_ms = 0;
    uint32_t retention = 0;
    uint32_t segment = 0;
    bool live = true;
  };
  struct Segment {
    std::vector<uint32_t> stripes;
    double bytes = 0;
    bool sealed = false;
    bool free = true;
  };

  explicit StorePolicy(StorePolicyOptions options);
  uint64_t CountHits(int64_t now_ms);
  void TouchAndWrite(int64_t now_ms, uint32_t retention, uint64_t hit_blocks);
  void WriteStripe(std::vector<uint32_t> blocks, int64_t now_ms, uint32_t retention);
  double PhysicalBytes(double payload_bytes) const;
  void Append(uint32_t stripe);
  double Footprint(const Segment& segment) const;
  uint32_t OpenSegment(uint32_t retention, double bytes);
  bool Reclaim(int64_t now_ms);
  uint64_t RecencyToKeep() const;
  uint32_t PickVictim(int64_t now_ms, uint64_t recent) const;
  void Drop(uint32_t stripe);

  StorePolicyOptions options_;
  BlockTable table_;
  std::vector<uint32_t> indexes_;
  std::vector<uint32_t> stripe_of_;  // By block; kNone = absent.
  std::vector<Stripe> stripes_;
  std::vector<uint32_t> spare_stripes_;  // Entries of stripes_ to be used again.
  std::vector<Segment> segments_;
  std::vector<uint32_t> open_;  // By class; kNone = none open.
  double used_bytes_ = 0;
  uint64_t recency_ = 0;
  uint64_t keep_recency_ = 0;
  uint32_t reclaims_ = 0;
  StorePolicyCounts counts_;
};

}  // namespace cairn::tools
