// Stack distances from a bitmap of time slots: each block is live in the slot of its last use.
#include "tools/cachesim/lru_curve.h"

#include <algorithm>

#include "kvstore/base/check.h"

namespace cairn::tools {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr size_t kPrefetchAhead = 16;
constexpr uint32_t kFirstSlots = 1 << 16;
// Two slots this near are compared word by word instead of through the tree.
constexpr uint32_t kNeighbours = 256;

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

StackDistances::StackDistances() : block_at_(kFirstSlots), live_(kFirstSlots) {}

void StackDistances::Touch(std::span<const uint64_t> blocks, std::vector<uint32_t>& distances) {
  table_.Intern(blocks, numbered_);
  Touch(numbered_, table_.size(), distances);
}

void StackDistances::Touch(std::span<const uint32_t> blocks, uint32_t numbers,
                           std::vector<uint32_t>& distances) {
  MakeRoom(static_cast<uint32_t>(blocks.size()));
  if (slot_of_.size() < numbers) slot_of_.resize(numbers, kNone);
  Measure(blocks, distances);
  MoveToFront(blocks);
}

// Slots run out: keep the live ones only, in their order, at the front of a larger array.
void StackDistances::MakeRoom(uint32_t slots) {
  if (uint64_t{next_slot_} + slots <= live_.slots()) return;
  const uint64_t wanted = std::max(uint64_t{kFirstSlots}, (uint64_t{live_.live()} + slots) * 2);
  KV_CHECK(wanted < kNone);
  std::vector<uint32_t> kept;
  kept.reserve(live_.live());
  for (uint32_t slot = 0; slot < next_slot_; ++slot) {
    if (live_.Contains(slot)) kept.push_back(block_at_[slot]);
  }
  for (uint32_t slot = 0; slot < kept.size(); ++slot) slot_of_[kept[slot]] = slot;
  next_slot_ = static_cast<uint32_t>(kept.size());
  live_ = LiveSlots(static_cast<uint32_t>(wanted));
  live_.AddRange(0, next_slot_);
  block_at_ = std::move(kept);
  block_at_.resize(live_.slots());
}

void StackDistances::Measure(std::span<const uint32_t> blocks,
                             std::vector<uint32_t>& distances) const {
  distances.resize(blocks.size());
  uint32_t known_slot = kNone;
  uint32_t known_distance = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (i + kPrefetchAhead < blocks.size()) {
      __builtin_prefetch(&slot_of_[blocks[i + kPrefetchAhead]]);
    }
    const uint32_t slot = slot_of_[blocks[i]];
    if (slot == kNone) {
      distances[i] = kCold;
      continue;
    }
    // A chain lies in neighbouring slots, each block just before its parent.
    if (known_slot != kNone && slot + 1 == known_slot) {
      ++known_distance;
    } else if (known_slot != kNone && slot <= known_slot && known_slot - slot <= kNeighbours) {
      known_distance += live_.CountBetween(slot, known_slot);
    } else {
      known_distance = live_.CountFrom(slot);
    }
    known_slot = slot;
    distances[i] = known_distance;
  }
}

void StackDistances::MoveToFront(std::span<const uint32_t> blocks) {
  const auto count = static_cast<uint32_t>(blocks.size());
  for (const uint32_t block : blocks) {
    if (slot_of_[block] == kNone) continue;
    live_.Remove(slot_of_[block]);
    slot_of_[block] = kNone;
  }
  live_.Settle();
  live_.AddRange(next_slot_, next_slot_ + count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t block = blocks[count - 1 - i];
    if (slot_of_[block] != kNone) live_.Remove(slot_of_[block]);  // Twice in one request.
    slot_of_[block] = next_slot_ + i;
    block_at_[next_slot_ + i] = block;
  }
  live_.Settle();
  next_slot_ += count;
}

void LruCurve::Add(const Access& access) {
  stack_.Touch(access.blocks, distances_);
  Count(access.input_tokens);
}

void LruCurve::Add(const NumberedAccess& access) {
  stack_.Touch(access.blocks, access.numbers, distances_);
  Count(access.input_tokens);
}

void LruCurve::Count(uint64_t input_tokens) {
  if (tokens_by_distance_.size() <= stack_.distinct_blocks()) {
    tokens_by_distance_.resize(size_t{stack_.distinct_blocks()} * 2 + 1);
  }
  uint64_t hit_tokens = 0;
  uint32_t needed = 0;  // The leading run ends where the capacity first falls short.
  bool leading = true;
  for (size_t i = 0; i < distances_.size(); ++i) {
    const uint64_t tokens = TokensAt(i, block_tokens_, input_tokens);
    if (distances_[i] == StackDistances::kCold) {
      leading = false;
      unique_tokens_ += tokens;
    } else if (leading) {
      needed = std::max(needed, distances_[i]);
      tokens_by_distance_[needed] += tokens;
      hit_tokens += tokens;
    }
  }
  ++requests_;
  if (hit_tokens == 0) ++requests_without_hit_;
  touches_ += distances_.size();
  input_tokens_ += input_tokens;
  ideal_hit_tokens_ += hit_tokens;
  last_hit_tokens_ = hit_tokens;
  request_rates_ += Share(hit_tokens, input_tokens);
}

double LruCurve::HitRate(uint64_t capacity_blocks) const {
  uint64_t tokens = 0;
  const size_t end = std::min<size_t>(tokens_by_distance_.size(), capacity_blocks + 1);
  for (size_t distance = 0; distance < end; ++distance) tokens += tokens_by_distance_[distance];
  return Share(tokens, input_tokens_);
}

double LruCurve::IdealHitRate() const { return Share(ideal_hit_tokens_, input_tokens_); }

double LruCurve::MeanRequestRate() const {
  return requests_ == 0 ? 0 : request_rates_ / static_cast<double>(requests_);
}

}  // namespace cairn::tools
