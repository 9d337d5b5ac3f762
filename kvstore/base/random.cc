// The generator xoshiro256** with the draws built on it.
#include "kvstore/base/random.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace cairn::kv {
namespace {

uint64_t SplitMix64(uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

Random::Random(uint64_t seed) : state_{} {
  for (uint64_t& word : state_) word = SplitMix64(seed);
}

uint64_t Random::Next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Random::Below(uint64_t bound) {
  KV_CHECK(bound > 0);
  // Rejects the few values that would favour small results.
  const uint64_t threshold = (0 - bound) % bound;
  uint64_t draw = Next();
  while (draw < threshold) draw = Next();
  return draw % bound;
}

void Random::Fill(MutableByteSpan target) {
  for (size_t at = 0; at < target.size(); at += sizeof(uint64_t)) {
    const uint64_t word = Next();
    std::memcpy(target.data() + at, &word, std::min(sizeof(word), target.size() - at));
  }
}

}  // namespace cairn::kv
