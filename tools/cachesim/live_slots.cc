// The Fenwick tree stands over 64-slot words, so a chain of neighbours costs little more than one
// touch.
#include "tools/cachesim/live_slots.h"

#include <algorithm>
#include <bit>

#include "kvstore/base/check.h"

namespace cairn::tools {
namespace {

// The bits [begin, end) of one word; 0 <= begin < end <= 64.
uint64_t Mask(uint32_t begin, uint32_t end) {
  return (~UINT64_C(0) << begin) & (~UINT64_C(0) >> (64 - end));
}

}  // namespace

LiveSlots::LiveSlots(uint32_t slots) : words_((slots + 63) / 64), tree_(words_.size() + 1) {}

void LiveSlots::AddRange(uint32_t begin, uint32_t end) {
  for (uint32_t at = begin; at < end;) {
    const uint32_t stop = std::min(end, (at / 64 + 1) * 64);
    const uint64_t mask = Mask(at % 64, stop - at / 64 * 64);
    KV_CHECK((words_[at / 64] & mask) == 0);
    words_[at / 64] |= mask;
    Update(at / 64, stop - at);
    at = stop;
  }
  live_ += end - begin;
}

void LiveSlots::Remove(uint32_t slot) {
  KV_CHECK(Contains(slot));
  if (slot / 64 != pending_word_) Settle();
  pending_word_ = slot / 64;
  ++pending_removals_;
  words_[slot / 64] &= ~(UINT64_C(1) << (slot % 64));
  --live_;
}

void LiveSlots::Settle() {
  if (pending_removals_ > 0) Update(pending_word_, 0 - pending_removals_);
  pending_removals_ = 0;
}

void LiveSlots::Update(uint32_t word, uint32_t delta) {
  for (size_t i = word + 1; i < tree_.size(); i += i & (0 - i)) tree_[i] += delta;
}

uint32_t LiveSlots::CountFrom(uint32_t slot) const {
  const uint64_t older_bits = words_[slot / 64] & ((UINT64_C(1) << (slot % 64)) - 1);
  auto older = static_cast<uint32_t>(std::popcount(older_bits));
  for (size_t i = slot / 64; i > 0; i &= i - 1) older += tree_[i];
  return live_ - older;
}

uint32_t LiveSlots::CountBetween(uint32_t begin, uint32_t end) const {
  uint32_t count = 0;
  for (uint32_t at = begin; at < end;) {
    const uint32_t stop = std::min(end, (at / 64 + 1) * 64);
    count +=
        static_cast<uint32_t>(std::popcount(words_[at / 64] & Mask(at % 64, stop - at / 64 * 64)));
    at = stop;
  }
  return count;
}

}  // namespace cairn::tools
