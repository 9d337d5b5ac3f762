// The state of every stripe that a replica files: 40 bytes a slot.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "kvstore/base/status.h"
#include "kvstore/index/index_codec.h"
#include "kvstore/types/stripe_table.h"

namespace cairn::kv {

// Exact up to the year 2109, position 2^22 - 1 and a TTL of 8 years; what is beyond counts as that.
class StateTable {
 public:
  // Nothing when absent.
  std::optional<StripeState> Find(StripeId stripe) const;
  bool Has(StripeId stripe) const { return table_.Find(stripe) != nullptr; }
  size_t size() const { return table_.size(); }
  uint64_t memory_bytes() const;

  // Adds or replaces. kOverloaded when stripes of 65,536 other namespaces are here.
  Status Set(StripeId stripe, const StripeState& state);
  // False when it was absent.
  bool Erase(StripeId stripe);

  // Raises what `use` raises, and notes a hit. True when that changed anything.
  bool Raise(StripeId stripe, const StripeUse& use);
  // A mark for what is yet to be written; Set clears it.
  bool IsDirty(StripeId stripe) const;
  void SetDirty(StripeId stripe, bool dirty);

  // Calls visit(stripe, state) for the stripes behind `after` (from the first when it is none), in
  // an order that depends on the stripes alone, until it returns false. `after` itself need not be
  // here any more: this is how to walk in pieces while the table changes.
  template <typename Visit>
  void ForEachAfter(std::optional<StripeId> after, Visit visit) const {
    table_.ForEachAfter(after, [&](StripeId stripe, const Packed& packed) {
      return visit(stripe, Unpack(packed));
    });
  }

 private:
  struct Packed {
    uint64_t expires_at : 42 = 0;  // Milliseconds; the others are seconds.
    uint64_t position : 22 = 0;
    uint64_t ttl_seconds : 28 = 0;
    uint64_t payload_sectors : 15 = 0;
    uint64_t used : 1 = 0;
    uint64_t fixed : 1 = 0;
    uint64_t hit : 1 = 0;
    uint64_t dirty : 1 = 0;
    uint64_t space : 16 = 0;  // In spaces_.
    uint32_t last_access = 0;
    uint32_t keep_until = 0;
    bool occupied() const { return used == 1; }
  };
  static_assert(sizeof(Packed) == 24);
  struct Space {
    NamespaceId id;
    uint64_t stripes = 0;  // When there are none, the place is free.
  };

  StripeState Unpack(const Packed& packed) const;
  std::optional<uint16_t> PlaceOf(const NamespaceId& space);
  void Leave(uint16_t space);

  StripeTable<Packed> table_;
  std::vector<Space> spaces_;
  std::map<NamespaceId, uint16_t> places_;  // Of the spaces that have stripes.
};

}  // namespace cairn::kv
