// A table by stripe id for tens of millions of entries: small slots, nearly full, grown in steps.
//
// 512 parts by hash, each an ordered linear probing table (Amble and Knuth, 1974): entries lie by
// ascending hash, at or behind their home, so that a search ends at the first larger one, hit or
// miss. A part grows by 3 to 9 % when it is 7/8 full, at a size of its own: the table as a whole
// stays about 83 % full, and no single step copies more than a 512th of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "kvstore/base/check.h"
#include "kvstore/types/ids.h"

namespace cairn::kv {

// `Value` is trivially copyable; occupied() is false for Value{} and true for all that is stored.
template <typename Value>
class StripeTable {
 public:
  // Null when absent. Valid until the next change. Whoever writes through it keeps it occupied.
  const Value* Find(StripeId stripe) const {
    const uint64_t hash = HashOf(stripe);
    const Part& part = parts_[hash >> kHomeBits];
    const size_t at = Locate(part, hash, stripe);
    return at < part.slots.size() && Holds(part, at, stripe) ? &part.slots[at].value : nullptr;
  }
  Value* Find(StripeId stripe) { return const_cast<Value*>(std::as_const(*this).Find(stripe)); }

  // Adds or replaces.
  void Set(StripeId stripe, const Value& value) {
    KV_CHECK(value.occupied());
    const uint64_t hash = HashOf(stripe);
    Part& part = parts_[hash >> kHomeBits];
    size_t at = Locate(part, hash, stripe);
    if (at < part.slots.size() && Holds(part, at, stripe)) {
      part.slots[at].value = value;
      return;
    }
    if ((part.used + 1) * 8 > part.homes * 7) {
      Resize(part, GrownHomes(part));
      at = Locate(part, hash, stripe);
    }
    InsertAt(part, at, {stripe, value});
    ++size_;
  }

  // False when it was absent.
  bool Erase(StripeId stripe) {
    const uint64_t hash = HashOf(stripe);
    Part& part = parts_[hash >> kHomeBits];
    size_t hole = Locate(part, hash, stripe);
    if (hole == part.slots.size() || !Holds(part, hole, stripe)) return false;
    // What follows moves up, unless that would put it before its home.
    for (; hole + 1 < part.slots.size(); ++hole) {
      const Slot& next = part.slots[hole + 1];
      if (!next.value.occupied() || HomeOf(part, HashOf(next.stripe)) > hole) break;
      part.slots[hole] = next;
    }
    part.slots[hole] = {};
    --part.used;
    --size_;
    if (part.homes > kHomesMin && part.used * 2 < part.homes) {
      Resize(part, std::max(kHomesMin, part.used * 5 / 4));
    }
    return true;
  }

  size_t size() const { return size_; }
  // What the table holds, without the allocator's own overhead.
  uint64_t memory_bytes() const { return parts_.size() * sizeof(Part) + slots_ * sizeof(Slot); }

  // Calls visit(stripe, value) for each entry, in an order that depends on the entries alone.
  template <typename Visit>
  void ForEach(Visit visit) const {
    ForEachAfter(std::nullopt, [&](StripeId stripe, const Value& value) {
      visit(stripe, value);
      return true;
    });
  }
  // The same for the entries behind `after` (which need not be there any more), until `visit`
  // returns false: to walk in pieces while the table changes.
  template <typename Visit>
  void ForEachAfter(std::optional<StripeId> after, Visit visit) const {
    const uint64_t hash = after ? HashOf(*after) : 0;
    size_t number = hash >> kHomeBits;
    size_t at = after ? Locate(parts_[number], hash, *after) : 0;
    if (after && at < parts_[number].slots.size() && Holds(parts_[number], at, *after)) ++at;
    for (; number < kParts; ++number, at = 0) {
      const Part& part = parts_[number];
      for (; at < part.slots.size(); ++at) {
        const Slot& slot = part.slots[at];
        if (slot.value.occupied() && !visit(slot.stripe, slot.value)) return;
      }
    }
  }

 private:
  static constexpr uint32_t kHomeBits = 55;
  static constexpr size_t kParts = size_t{1} << (64 - kHomeBits);
  static constexpr uint64_t kHomesMin = 4;

  struct Slot {
    StripeId stripe;
    Value value;
  };
  struct Part {
    std::vector<Slot> slots;  // The homes, and some behind them for what did not fit in its own.
    uint64_t homes = 0;
    uint64_t used = 0;
  };

  // Ids are uniform already; mixing makes their order nothing that a test or a caller could choose.
  static uint64_t HashOf(StripeId stripe) {
    uint64_t hash = (stripe.low ^ (stripe.high << 32 | stripe.high >> 32)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    return hash * 0xd6e8feb86659fd93u;
  }
  static size_t HomeOf(const Part& part, uint64_t hash) {
    return (hash << (64 - kHomeBits) >> 32) * part.homes >> 32;
  }
  static bool Holds(const Part& part, size_t at, StripeId stripe) {
    return part.slots[at].value.occupied() && part.slots[at].stripe == stripe;
  }
  // Where the stripe is, or would go: the first slot from its home that is free or not before it.
  static size_t Locate(const Part& part, uint64_t hash, StripeId stripe) {
    size_t at = HomeOf(part, hash);
    for (; at < part.slots.size() && part.slots[at].value.occupied(); ++at) {
      const Slot& slot = part.slots[at];
      if (slot.stripe == stripe) break;
      const uint64_t other = HashOf(slot.stripe);
      if (other > hash || (other == hash && slot.stripe > stripe)) break;
    }
    return at;
  }

  // The parts' sizes drift apart, so that they do not all grow at the same time.
  uint64_t GrownHomes(const Part& part) const {
    const auto number = static_cast<uint64_t>(&part - parts_.data());
    const uint64_t drawn = HashOf({{number, part.homes}}) >> 32;
    return std::max(kHomesMin, part.homes + std::max<uint64_t>(2, part.homes / 32) +
                                   drawn % (part.homes / 16 + 1));
  }

  // Homes keep the order of hashes, so entries move over as they lie.
  void Resize(Part& part, uint64_t homes) {
    std::vector<Slot> old = std::exchange(part.slots, {});
    slots_ -= old.size();
    part.homes = homes;
    part.slots.resize(homes + 2 + homes / 64);
    slots_ += part.slots.size();
    size_t next = 0;
    for (const Slot& slot : old) {
      if (!slot.value.occupied()) continue;
      next = std::max(next, HomeOf(part, HashOf(slot.stripe)));
      if (next >= part.slots.size()) Lengthen(part, next + 1);
      part.slots[next++] = slot;
    }
  }

  // Adds slots behind the last home, up to `size` and a few to spare.
  void Lengthen(Part& part, size_t size) {
    const size_t longer = size + 4 + part.homes / 128;
    slots_ += longer - part.slots.size();
    part.slots.reserve(longer);  // Exactly that much.
    part.slots.resize(longer);
  }

  // Makes room at `at`, where the entry belongs.
  void InsertAt(Part& part, size_t at, const Slot& slot) {
    size_t end = at;
    while (end < part.slots.size() && part.slots[end].value.occupied()) ++end;
    if (end == part.slots.size()) Lengthen(part, end + 1);
    const auto begin = part.slots.begin();
    std::move_backward(begin + static_cast<ptrdiff_t>(at), begin + static_cast<ptrdiff_t>(end),
                       begin + static_cast<ptrdiff_t>(end) + 1);
    part.slots[at] = slot;
    ++part.used;
  }

  std::vector<Part> parts_ = std::vector<Part>(kParts);
  size_t size_ = 0;
  uint64_t slots_ = 0;
};

}  // namespace cairn::kv
