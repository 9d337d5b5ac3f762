// Where each shard of a target lies: 24 bytes a slot, by stripe id.
#pragma once

#include <cstdint>
#include <optional>

#include "kvstore/segment/segment_log.h"
#include "kvstore/types/stripe_table.h"

namespace cairn::kv {

struct ShardPlace {
  SegmentId segment;
  uint32_t sector = 0;          // Of the record, from the segment's start.
  uint32_t payload_size = 0;    // Whole sectors, at least one.
  uint16_t header_sectors = 0;  // At least one.
  ShardIndex index;
  auto operator<=>(const ShardPlace&) const = default;

  uint64_t record_bytes() const { return header_sectors * kSectorSize + payload_size; }
};

// A ShardPlace in 64 bits.
class PackedPlace {
 public:
  PackedPlace() = default;
  // A check fails when the place does not fit: see IsPackable.
  explicit PackedPlace(const ShardPlace& place);
  ShardPlace Unpack() const;
  bool occupied() const { return bits_ != 0; }

 private:
  uint64_t bits_ = 0;
};

// True for every place that the limits of types/limits.h allow: all but damaged metadata.
bool IsPackable(const ShardPlace& place);

class ShardTable {
 public:
  // Nothing when absent.
  std::optional<ShardPlace> Find(StripeId stripe) const {
    const PackedPlace* place = table_.Find(stripe);
    return place == nullptr ? std::nullopt : std::optional(place->Unpack());
  }
  // Adds or replaces.
  void Set(StripeId stripe, const ShardPlace& place) { table_.Set(stripe, PackedPlace(place)); }
  // False when it was absent.
  bool Erase(StripeId stripe) { return table_.Erase(stripe); }

  size_t size() const { return table_.size(); }
  uint64_t memory_bytes() const { return table_.memory_bytes(); }

  // Calls visit(stripe, place) for each entry, in an order that depends on the entries alone.
  template <typename Visit>
  void ForEach(Visit visit) const {
    table_.ForEach([&](StripeId stripe, PackedPlace place) { visit(stripe, place.Unpack()); });
  }
  // For the entries behind `after`, until `visit` returns false: see StripeTable::ForEachAfter.
  template <typename Visit>
  void ForEachAfter(std::optional<StripeId> after, Visit visit) const {
    table_.ForEachAfter(after, [&](StripeId stripe, PackedPlace place) {
      return visit(stripe, place.Unpack());
    });
  }

 private:
  StripeTable<PackedPlace> table_;
};

}  // namespace cairn::kv
