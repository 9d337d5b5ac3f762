// The hit rate of an LRU cache at every capacity at once, by exact stack distances (Mattson, 1970).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/cachesim/access.h"
#include "tools/cachesim/block_table.h"
#include "tools/cachesim/live_slots.h"

namespace cairn::tools {

// For each block of a request: how many distinct blocks were used since its last use, itself
// included. A cache of that many blocks, and no smaller one, would hit.
class StackDistances {
 public:
  static constexpr uint32_t kCold = UINT32_MAX;  // Never seen before.

  StackDistances();

  // Fills `distances`, then touches the blocks from the tail to the root. Blocks come by their ids,
  // or numbered by the caller, `numbers` of them so far.
  void Touch(std::span<const uint64_t> blocks, std::vector<uint32_t>& distances);
  void Touch(std::span<const uint32_t> blocks, uint32_t numbers, std::vector<uint32_t>& distances);

  uint32_t distinct_blocks() const { return live_.live(); }

 private:
  void MakeRoom(uint32_t slots);
  void Measure(std::span<const uint32_t> blocks, std::vector<uint32_t>& distances) const;
  void MoveToFront(std::span<const uint32_t> blocks);

  BlockTable table_;                // Of blocks that come by their ids.
  std::vector<uint32_t> slot_of_;   // By block number; kNone before the first touch.
  std::vector<uint32_t> block_at_;  // By slot; meaningful where live_ contains the slot.
  LiveSlots live_;
  uint32_t next_slot_ = 0;
  std::vector<uint32_t> numbered_;  // The blocks of the request in hand that came by their ids.
};

class LruCurve {
 public:
  explicit LruCurve(uint64_t block_tokens) : block_tokens_(block_tokens) {}

  // One or the other, always.
  void Add(const Access& access);
  void Add(const NumberedAccess& access);

  // --- All rates are hit tokens / prompt tokens; 0 before the first request. ---
  double HitRate(uint64_t capacity_blocks) const;
  double HitRateAtTokens(uint64_t capacity_tokens) const {
    return HitRate(capacity_tokens / block_tokens_);
  }
  // Of a cache that forgets nothing.
  double IdealHitRate() const;
  // The mean over requests of each one's own rate, ideal cache.
  double MeanRequestRate() const;
  // Ideal hits of the request added last, in tokens.
  uint64_t last_hit_tokens() const { return last_hit_tokens_; }
  uint64_t requests() const { return requests_; }
  uint64_t requests_without_hit() const { return requests_without_hit_; }
  uint64_t input_tokens() const { return input_tokens_; }
  uint64_t ideal_hit_tokens() const { return ideal_hit_tokens_; }
  // Each block's tokens counted once, when first seen.
  uint64_t unique_tokens() const { return unique_tokens_; }
  uint64_t distinct_blocks() const { return stack_.distinct_blocks(); }
  uint64_t touches() const { return touches_; }

 private:
  void Count(uint64_t input_tokens);  // Of the request whose distances are there.

  const uint64_t block_tokens_;
  StackDistances stack_;
  std::vector<uint32_t> distances_;
  std::vector<uint64_t> tokens_by_distance_;  // Hit tokens that need exactly this capacity.
  uint64_t requests_ = 0;
  uint64_t requests_without_hit_ = 0;
  uint64_t input_tokens_ = 0;
  uint64_t ideal_hit_tokens_ = 0;
  uint64_t unique_tokens_ = 0;
  uint64_t last_hit_tokens_ = 0;
  uint64_t touches_ = 0;
  double request_rates_ = 0;
};

}  // namespace cairn::tools
