// A stripe whose shards lie at odd addresses between guard bytes, with verbs to lose and rebuild.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "erasure/codec.h"
#include "kvstore/base/random.h"

namespace cairn::erasure {

// One shard at a chosen offset from a 64-byte boundary, fenced on both sides.
class GuardedShard {
 public:
  GuardedShard(size_t size, size_t misalignment) : size_(size), memory_(size + 3 * kFence, 0xA5) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    start_ = kFence - address % kFence + misalignment % kFence;
  }
  std::span<uint8_t> bytes() { return {memory_.data() + start_, size_}; }
  std::span<const uint8_t> bytes() const { return {memory_.data() + start_, size_}; }
  void Fill(kv::Random& random) { random.Fill(bytes()); }
  void Clear() { std::fill(bytes().begin(), bytes().end(), uint8_t{0xEE}); }
  // Nothing was written outside.
  bool FenceHolds() const {
    for (size_t i = 0; i < memory_.size(); ++i) {
      const bool inside = i >= start_ && i < start_ + size_;
      if (!inside && memory_[i] != 0xA5) return false;
    }
    return true;
  }
  bool operator==(const GuardedShard& other) const {
    return std::equal(bytes().begin(), bytes().end(), other.bytes().begin(), other.bytes().end());
  }

 private:
  static constexpr size_t kFence = 64;
  size_t size_;
  std::vector<uint8_t> memory_;
  size_t start_ = 0;
};

inline std::vector<std::span<const uint8_t>> ViewsOf(std::span<const GuardedShard> shards) {
  std::vector<std::span<const uint8_t>> views;
  for (const GuardedShard& shard : shards) views.push_back(shard.bytes());
  return views;
}

inline std::vector<std::span<uint8_t>> TargetsOf(std::span<GuardedShard> shards) {
  std::vector<std::span<uint8_t>> targets;
  for (GuardedShard& shard : shards) targets.push_back(shard.bytes());
  return targets;
}

// Random data, encoded.
class Stripe {
 public:
  Stripe(const Codec& codec, size_t size, uint64_t seed = 1, size_t misalignment_step = 7)
      : codec_(codec), size_(size) {
    kv::Random random(seed);
    for (size_t i = 0; i < codec.total_shards(); ++i) {
      shards_.emplace_back(size, i * misalignment_step);
      if (i < codec.data_shards()) shards_.back().Fill(random);
    }
    codec_.Encode(data(), TargetsOf(std::span(shards_).subspan(codec.data_shards())));
  }

  std::vector<std::span<const uint8_t>> data() const {
    return ViewsOf(std::span(shards_).first(codec_.data_shards()));
  }
  std::vector<std::span<const uint8_t>> parity() const {
    return ViewsOf(std::span(shards_).subspan(codec_.data_shards()));
  }
  GuardedShard& shard(size_t index) { return shards_[index]; }
  const GuardedShard& shard(size_t index) const { return shards_[index]; }

  // Whether bytes [begin, end) of all shards in the mask `lost` come back exact from the others.
  bool Rebuilds(uint64_t lost, size_t begin, size_t end) const {
    std::vector<Survivor> survivors;
    std::vector<GuardedShard> rebuilt;
    std::vector<Wanted> wanted;
    rebuilt.reserve(shards_.size());
    for (size_t i = 0; i < shards_.size(); ++i) {
      const auto index = static_cast<uint8_t>(i);
      if ((lost >> i & 1) == 0) {
        survivors.push_back({index, shards_[i].bytes().subspan(begin, end - begin)});
      } else {
        rebuilt.emplace_back(end - begin, 5 * i);
        rebuilt.back().Clear();
        wanted.push_back({index, rebuilt.back().bytes()});
      }
    }
    if (!codec_.Reconstruct(survivors, wanted)) return false;
    for (size_t r = 0; r < wanted.size(); ++r) {
      const auto truth = shards_[wanted[r].index].bytes().subspan(begin, end - begin);
      if (!std::equal(truth.begin(), truth.end(), wanted[r].bytes.begin())) return false;
      if (!rebuilt[r].FenceHolds()) return false;
    }
    return true;
  }
  bool Rebuilds(uint64_t lost) const { return Rebuilds(lost, 0, size_); }

 private:
  const Codec codec_;
  const size_t size_;
  std::vector<GuardedShard> shards_;
};

inline Codec MakeCodec(size_t data_shards, size_t parity_shards) {
  const Shape shape{.data_shards = static_cast<uint8_t>(data_shards),
                    .parity_shards = static_cast<uint8_t>(parity_shards),
                    .code = PreferredCode(parity_shards)};
  return *Codec::Create(shape);
}

}  // namespace cairn::erasure
