// Row by row kernels: quantising, norm, activation. Included by the kernels_*.cc files only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/compute/cpu/kernels.h"

namespace cairn::engine {

// e^x to within 2 units in the last place; exactly 0 below -87.3, and x is at most 88.
template <class L>
typename L::Float Exp(typename L::Float x) {
  using Float = typename L::Float;
  const Float least = L::Broadcast(-87.3f);
  const Float bounded = L::Min(L::Max(x, least), L::Broadcast(88.0f));
  // x = n * ln 2 + r with |r| <= ln 2 / 2; ln 2 in two parts so that r is exact.
  const typename L::Int n = L::Round(L::Mul(bounded, L::Broadcast(1.44269504f)));
  const Float n_float = L::ToFloat(n);
  Float r = L::Fma(n_float, L::Broadcast(-0.693359375f), bounded);
  r = L::Fma(n_float, L::Broadcast(2.12194440e-4f), r);
  // Cephes' expf polynomial.
  Float p = L::Broadcast(1.9875691500e-4f);
  p = L::Fma(p, r, L::Broadcast(1.3981999507e-3f));
  p = L::Fma(p, r, L::Broadcast(8.3334519073e-3f));
  p = L::Fma(p, r, L::Broadcast(4.1665795894e-2f));
  p = L::Fma(p, r, L::Broadcast(1.6666665459e-1f));
  p = L::Fma(p, r, L::Broadcast(5.0000001201e-1f));
  p = L::Add(L::Fma(p, L::Mul(r, r), r), L::Broadcast(1.0f));
  return L::IfLess(x, least, L::Broadcast(0.0f), L::Mul(p, L::PowerOfTwo(n)));
}

// A block without a value of at least this size is all zero: its inverse scale would not be finite.
inline constexpr float kTiny = 1e-30f;

template <class L>
float RoundToHalf(float value) {
  uint16_t halves[16];
  L::StoreHalf(halves, L::Broadcast(value));
  float rounded[16];
  L::Store(rounded, L::LoadHalf(halves));
  return rounded[0];
}

template <class L>
void Quantise32(const float* x, uint32_t columns, const QuantisedRows& row) {
  for (uint32_t block = 0; block < columns / 32; ++block, x += 32) {
    const typename L::Float first = L::Load(x), second = L::Load(x + 16);
    const float extreme = L::ReduceMax(L::Max(L::Abs(first), L::Abs(second)));
    const float scale = extreme < kTiny ? 0.0f : extreme / 127.0f;
    const typename L::Float inverse = L::Broadcast(extreme < kTiny ? 0.0f : 127.0f / extreme);
    const typename L::Int first_codes = L::Round(L::Mul(first, inverse));
    const typename L::Int second_codes = L::Round(L::Mul(second, inverse));
    L::StoreSigned8(row.codes + 32 * block, first_codes);
    L::StoreSigned8(row.codes + 32 * block + 16, second_codes);
    const int32_t sum = L::ReduceAddInt(L::AddInt(first_codes, second_codes));
    row.scales[block] = RoundToHalf<L>(scale);
    row.sums[block] = sum;
    row.scaled_sums[block] = RoundToHalf<L>(scale * static_cast<float>(sum));
  }
}

template <class L>
void Quantise256(const float* x, uint32_t columns, const QuantisedRows& row) {
  for (uint32_t super = 0; super < columns / 256; ++super, x += 256) {
    typename L::Float most = L::Load(x), least = most;
    for (uint32_t i = 16; i < 256; i += 16) {
      most = L::Max(most, L::Load(x + i));
      least = L::Min(least, L::Load(x + i));
    }
    const float largest = L::ReduceMax(most);
    const float smallest = -L::ReduceMax(L::Sub(L::Broadcast(0.0f), least));
    // The value of the largest magnitude becomes -127; of equal ones the positive.
    const float extreme = largest >= -smallest ? largest : smallest;
    const bool is_zero = extreme < kTiny && extreme > -kTiny;
    const float inverse = is_zero ? 0.0f : -127.0f / extreme;
    for (uint32_t i = 0; i < 256; i += 16) {
      const typename L::Int codes = L::Round(L::Mul(L::Load(x + i), L::Broadcast(inverse)));
      L::StoreSigned8(row.codes + 256 * super + i, codes);
      row.sums[16 * super + i / 16] = L::ReduceAddInt(codes);
    }
    row.scales[super] = is_zero ? 0.0f : 1.0f / inverse;
  }
}

template <class L>
void RmsNorm(const float* x, const float* weight, uint32_t width, float epsilon, float* output) {
  typename L::Float squares = L::Broadcast(0.0f);
  for (uint32_t i = 0; i < width; i += 16)
    squares = L::Fma(L::Load(x + i), L::Load(x + i), squares);
  const float mean = L::ReduceAdd(squares) / static_cast<float>(width);
  const typename L::Float scale = L::Broadcast(1.0f / __builtin_sqrtf(mean + epsilon));
  for (uint32_t i = 0; i < width; i += 16) {
    L::Store(output + i, L::Mul(L::Mul(L::Load(x + i), scale), L::Load(weight + i)));
  }
}

template <class L>
void SwiGlu(float* gate, const float* up, uint32_t width) {
  const typename L::Float one = L::Broadcast(1.0f);
  for (uint32_t i = 0; i < width; i += 16) {
    const typename L::Float x = L::Load(gate + i);
    const typename L::Float decay = Exp<L>(L::Sub(L::Broadcast(0.0f), x));
    L::Store(gate + i, L::Mul(L::Div(x, L::Add(one, decay)), L::Load(up + i)));
  }
}

template <class L>
void Add(float* x, const float* y, uint32_t width) {
  for (uint32_t i = 0; i < width; i += 16) L::Store(x + i, L::Add(L::Load(x + i), L::Load(y + i)));
}

template <class L>
void ToHalf(const float* x, uint32_t count, uint16_t* output) {
  for (uint32_t i = 0; i < count; i += 16) L::StoreHalf(output + i, L::Load(x + i));
}

}  // namespace cairn::engine
