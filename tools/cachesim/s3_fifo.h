// S3-FIFO (Yang et al., SOSP 2023): three queues that beat LRU on many traces without moving on
// hits.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "tools/cachesim/access.h"
#include "tools/cachesim/block_table.h"

namespace cairn::tools {

// New blocks enter a small queue of a tenth of the capacity; those used there again move to the
// main queue, others leave a ghost behind that lets them straight into the main queue next time.
class S3Fifo {
 public:
  // At least 1 block.
  S3Fifo(uint64_t block_tokens, uint64_t capacity_blocks);

  void Add(const Access& access);
  double HitRate() const;

  // --- The queue machine alone, by block index; for tests. ---
  bool Resident(uint32_t index) const;
  void Use(uint32_t index);

 private:
  enum class Place : uint8_t { kNowhere, kSmall, kMain, kGhost };
  struct Block {
    Place place = Place::kNowhere;
    uint8_t uses = 0;          // Since it entered its queue, at most 3.
    uint32_t ghost_entry = 0;  // Which of its entries in the ghost queue counts.
  };
  struct Ghost {
    uint32_t index;
    uint32_t entry;
  };

  void EvictOne();
  void EvictFromSmall();
  void EvictFromMain();
  void Haunt(uint32_t index);

  const uint64_t block_tokens_;
  const uint64_t capacity_blocks_;
  const uint64_t small_blocks_;  // The small queue's share.
  BlockTable table_;
  std::vector<uint32_t> indexes_;
  std::vector<Block> blocks_;
  std::deque<uint32_t> small_;
  std::deque<uint32_t> main_;
  std::deque<Ghost> ghosts_;
  uint64_t ghosts_alive_ = 0;  // Entries that are still their block's latest.
  uint64_t input_tokens_ = 0;
  uint64_t hit_tokens_ = 0;
};

}  // namespace cairn::tools
