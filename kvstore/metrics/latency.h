// How long calls took: a histogram with one bucket for each power of two of microseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kvstore/base/time.h"

namespace cairn::kv {

// 1 us, 2 us, ... 2^25 us (33 s); what takes longer is only in `count`.
inline constexpr size_t kLatencyBuckets = 26;

struct LatencyHistogram {
  std::array<uint64_t, kLatencyBuckets> buckets{};  // Not cumulative.
  uint64_t count = 0;
  uint64_t sum_nanos = 0;

  void Add(Nanos took);
};

// The upper bound of bucket `i`, inclusive.
constexpr Nanos LatencyBound(size_t i) { return Micros(int64_t{1} << i); }

}  // namespace cairn::kv
