// Linear probing over a power of two of slots.
#include "kvstore/segment/shard_table.h"

#include <utility>

namespace cairn::kv {
namespace {

constexpr size_t kSlotsMin = 64;

}  // namespace

ShardTable::ShardTable() : slots_(kSlotsMin) { static_assert(sizeof(Slot) == 40); }

const ShardPlace* ShardTable::Find(StripeId stripe) const {
  const Slot& slot = slots_[Locate(stripe)];
  return slot.used ? &slot.place : nullptr;
}

void ShardTable::Set(StripeId stripe, const ShardPlace& place) {
  if ((size_ + 1) * 4 > slots_.size() * 3) Grow();
  Slot& slot = slots_[Locate(stripe)];
  size_ += slot.used ? 0 : 1;
  slot = {stripe, place, true};
}

bool ShardTable::Erase(StripeId stripe) {
  size_t hole = Locate(stripe);
  if (!slots_[hole].used) return false;
  --size_;
  // What follows moves up, unless that would put it before its home.
  for (size_t at = Next(hole); slots_[at].used; at = Next(at)) {
    const size_t mask = slots_.size() - 1;
    const size_t distance_home = (at - Home(slots_[at].stripe)) & mask;
    const size_t distance_hole = (at - hole) & mask;
    if (distance_home < distance_hole) continue;
    slots_[hole] = slots_[at];
    hole = at;
  }
  slots_[hole] = {};
  return true;
}

size_t ShardTable::Locate(StripeId stripe) const {
  size_t at = Home(stripe);
  while (slots_[at].used && slots_[at].stripe != stripe) at = Next(at);
  return at;
}

void ShardTable::Grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.used) slots_[Locate(slot.stripe)] = slot;
  }
}

}  // namespace cairn::kv
