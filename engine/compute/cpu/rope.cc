// Angles are multiplied up pair by pair in single precision, as ggml does: the rounding errors at
// far positions are part of what a model's greedy text depends on.
#include "engine/compute/cpu/rope.h"

#include <cmath>

namespace cairn::engine {

Rope::Rope(const ModelShape& shape, std::span<const float> factors)
    : head_dim_(shape.head_dim),
      rope_dim_(shape.rope_dim),
      position_scale_(shape.rope_scale),
      step_(std::pow(shape.rope_base, -2.0f / static_cast<float>(shape.rope_dim))),
      pairs_(shape.rope_pairs),
      factors_(factors.begin(), factors.end()) {}

void Rope::Angles(uint32_t position, float* angles) const {
  float angle = static_cast<float>(position);
  for (uint32_t pair = 0; pair < rope_dim_ / 2; ++pair) {
    const float factor = factors_.empty() ? 1.0f : factors_[pair];
    const double turned = static_cast<double>(position_scale_ * (angle / factor));
    angles[2 * pair] = static_cast<float>(std::cos(turned));
    angles[2 * pair + 1] = static_cast<float>(std::sin(turned));
    angle *= step_;
  }
}

void Rope::Turn(const float* angles, uint32_t heads, float* values) const {
  const bool adjacent = pairs_ == RopePairs::kAdjacent;
  const uint32_t stride = adjacent ? 2 : 1;
  const uint32_t partner = adjacent ? 1 : rope_dim_ / 2;
  for (uint32_t head = 0; head < heads; ++head, values += head_dim_) {
    for (uint32_t pair = 0; pair < rope_dim_ / 2; ++pair) {
      float* first = values + stride * pair;
      const float cosine = angles[2 * pair], sine = angles[2 * pair + 1];
      const float x = first[0], y = first[partner];
      first[0] = x * cosine - y * sine;
      first[partner] = x * sine + y * cosine;
    }
  }
}

}  // namespace cairn::engine
