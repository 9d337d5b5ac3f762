// A seeded generator whose sequence is the same on every compiler and machine.
#pragma once

#include <array>
#include <cstdint>

#include "kvstore/base/bytes.h"

namespace cairn::kv {

// xoshiro256** 1.0 (Blackman and Vigna, 2018), seeded through splitmix64. Not for secrets.
class Random {
 public:
  explicit Random(uint64_t seed);

  uint64_t Next();
  // Uniform in [0, bound). `bound` is at least 1.
  uint64_t Below(uint64_t bound);
  // True with probability `numerator` / `denominator`.
  bool Chance(uint64_t numerator, uint64_t denominator) { return Below(denominator) < numerator; }
  // Uniform in [0, 1), with 53 random bits.
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }
  void Fill(MutableByteSpan target);

 private:
  std::array<uint64_t, 4> state_;
};

}  // namespace cairn::kv
