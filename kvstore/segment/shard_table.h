// Where each shard of a target lies: an open-addressing table of 40-byte entries, by stripe id.
#pragma once

#include <cstdint>
#include <vector>

#include "kvstore/segment/segment_log.h"
#include "kvstore/types/ids.h"

namespace cairn::kv {

struct ShardPlace {
  SegmentId segment;
  uint32_t sector = 0;          // Of the record, from the segment's start.
  uint32_t payload_size = 0;
  uint16_t header_sectors = 0;
  ShardIndex index;
  auto operator<=>(const ShardPlace&) const = default;

  uint64_t record_bytes() const { return header_sectors * kSectorSize + payload_size; }
};

// Linear probing with backward-shift deletion (Knuth, TAOCP 6.4, algorithm R). At most 3/4 full.
class ShardTable {
 public:
  ShardTable();

  // Null when absent. Valid until the next change.
  const ShardPlace* Find(StripeId stripe) const;
  // Adds or replaces.
  void Set(StripeId stripe, const ShardPlace& place);
  // False when it was absent.
  bool Erase(StripeId stripe);

  size_t size() const { return size_; }
  uint64_t memory_bytes() const { return slots_.capacity() * sizeof(Slot); }

  // Calls visit(stripe, place) for each entry, in table order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Slot& slot : slots_) {
      if (slot.used) visit(slot.stripe, slot.place);
    }
  }

 private:
  struct Slot {
    StripeId stripe;
    ShardPlace place;
    bool used = false;
  };

  size_t Home(StripeId stripe) const { return IdHash()(stripe) & (slots_.size() - 1); }
  size_t Next(size_t at) const { return (at + 1) & (slots_.size() - 1); }
  // The slot that holds the stripe, or the free one where it would go.
  size_t Locate(StripeId stripe) const;
  void Grow();

  std::vector<Slot> slots_;  // A power of two of them.
  size_t size_ = 0;
};

}  // namespace cairn::kv
