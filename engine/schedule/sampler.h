// Chooses the next token from logits: greedy, or by temperature and top-p with a seeded generator.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/api/engine.h"
#include "engine/api/token.h"
#include "kvstore/base/random.h"

namespace cairn::engine {

class Sampler {
 public:
  // `seed` is used where params.seed is absent.
  Sampler(const SamplingParams& params, uint64_t seed);

  // Temperature 0: the largest logit, the lowest id among equals. Else softmax(logits /
  // temperature), cut to the smallest set of likeliest tokens whose probability reaches top_p
  // (Holtzman et al., 2019), and one draw. NaN logits are never chosen unless all are.
  TokenId Sample(std::span<const float> logits);

 private:
  TokenId Draw(std::span<const float> logits, float largest);

  const SamplingParams params_;
  kv::Random random_;
  std::vector<std::pair<double, TokenId>> candidates_;  // Kept to save allocations.
};

}  // namespace cairn::engine
