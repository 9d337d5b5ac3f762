// A set of time slots that counts its members from any slot on: a bitmap under a Fenwick tree.
#pragma once

#include <cstdint>
#include <vector>

namespace cairn::tools {

class LiveSlots {
 public:
  explicit LiveSlots(uint32_t slots);

  uint32_t slots() const { return static_cast<uint32_t>(words_.size() * 64); }
  uint32_t live() const { return live_; }
  bool Contains(uint32_t slot) const { return (words_[slot / 64] >> (slot % 64) & 1) != 0; }

  // All slots of [begin, end) must be dead.
  void AddRange(uint32_t begin, uint32_t end);
  // Must be live. The tree hears of it at the next Settle(), so that runs cost one update a word.
  void Remove(uint32_t slot);
  void Settle();

  // Live slots that are not older than `slot`. Needs a settled tree. O(log slots).
  uint32_t CountFrom(uint32_t slot) const;
  // Live slots in [begin, end): a few words only, so for neighbours. O(end - begin).
  uint32_t CountBetween(uint32_t begin, uint32_t end) const;

 private:
  void Update(uint32_t word, uint32_t delta);  // Modulo 2^32: a decrement is a large increment.

  std::vector<uint64_t> words_;
  std::vector<uint32_t> tree_;  // tree_[i]: live slots in words (i - lowbit(i), i], 1-based.
  uint32_t live_ = 0;
  uint32_t pending_word_ = 0;
  uint32_t pending_removals_ = 0;
};

}  // namespace cairn::tools
