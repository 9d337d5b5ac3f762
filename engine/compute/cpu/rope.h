// Rotary position embedding: angles of a position, and the turning of heads by them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/llama_model.h"

namespace cairn::engine {

class Rope {
 public:
  // `factors` divide the frequencies, one for each pair; empty for none.
  Rope(const ModelShape& shape, std::span<const float> factors);

  // Cosine and sine for each of the rope_dim / 2 pairs: angles_size() floats.
  void Angles(uint32_t position, float* angles) const;
  // Turns `heads` heads that lie one behind the other.
  void Turn(const float* angles, uint32_t heads, float* values) const;

  uint32_t angles_size() const { return rope_dim_; }

 private:
  const uint32_t head_dim_;
  const uint32_t rope_dim_;
  const float position_scale_;
  const float step_;  // Ratio of one pair's frequency to the one before.
  const RopePairs pairs_;
  const std::vector<float> factors_;
};

}  // namespace cairn::engine
