// Panel times tokens, for each pack format. Included by the kernels_*.cc files only.
//
// The order of every sum: integers within a block are exact; blocks are added in float in column
// order, one Fma each. It is the same for every tile size, so tokens do not see their neighbours.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/compute/cpu/block_kernels.h"
#include "engine/compute/cpu/kernels.h"
#include "engine/compute/cpu/super_kernels.h"

namespace cairn::engine {

// kFloat, kHalf: column c is added into chain c % 4; then (0 + 1) + (2 + 3).
template <class L, bool kIsHalf, int kTokens>
void MultiplyFloats(const MatMulArgs& args, uint32_t token) {
  typename L::Float chain[4][kTokens];
  for (auto& tokens : chain) {
    for (auto& lanes : tokens) lanes = L::Broadcast(0.0f);
  }
  const float* x = args.floats + token * args.float_stride;
  const auto add_column = [&](uint32_t column, typename L::Float(&sums)[kTokens]) {
    typename L::Float weight;
    if constexpr (kIsHalf) {
      weight = L::LoadHalf(reinterpret_cast<const uint16_t*>(args.panel) + size_t{16} * column);
    } else {
      weight = L::Load(reinterpret_cast<const float*>(args.panel) + size_t{16} * column);
    }
    for (int t = 0; t < kTokens; ++t) {
      const float value = x[static_cast<size_t>(t) * args.float_stride + column];
      sums[t] = L::Fma(weight, L::Broadcast(value), sums[t]);
    }
  };
  uint32_t column = 0;
  for (; column + 4 <= args.columns; column += 4) {
    for (uint32_t i = 0; i < 4; ++i) add_column(column + i, chain[i]);
  }
  for (uint32_t i = 0; column + i < args.columns; ++i) add_column(column + i, chain[i]);
  for (int t = 0; t < kTokens; ++t) {
    L::Store(args.output + (token + static_cast<size_t>(t)) * args.output_stride,
             L::Add(L::Add(chain[0][t], chain[1][t]), L::Add(chain[2][t], chain[3][t])));
  }
}

// One tile of `kTokens` tokens from `token` on.
template <class L, PackFormat kFormat, int kTokens>
void MultiplyTile(const MatMulArgs& args, uint32_t token) {
  if constexpr (kFormat == PackFormat::kFloat) MultiplyFloats<L, false, kTokens>(args, token);
  if constexpr (kFormat == PackFormat::kHalf) MultiplyFloats<L, true, kTokens>(args, token);
  if constexpr (kFormat == PackFormat::kBits4) MultiplyBlocks<L, 4, false, kTokens>(args, token);
  if constexpr (kFormat == PackFormat::kBits4Min) MultiplyBlocks<L, 4, true, kTokens>(args, token);
  if constexpr (kFormat == PackFormat::kBits8) MultiplyBlocks<L, 8, false, kTokens>(args, token);
  if constexpr (kFormat == PackFormat::kSuper4) MultiplySuper4<L, kTokens>(args, token);
  if constexpr (kFormat == PackFormat::kSuper6) MultiplySuper6<L, kTokens>(args, token);
}

template <class L, PackFormat kFormat>
void MultiplyPanel(const MatMulArgs& args) {
  // Formats with more accumulators per token get by with half the tile.
  constexpr bool kWide = kFormat == PackFormat::kBits4 || kFormat == PackFormat::kBits4Min ||
                         kFormat == PackFormat::kBits8;
  constexpr int kTile = kWide ? L::kTokenTile : L::kTokenTile / 2;
  uint32_t token = 0;
  for (; token + kTile <= args.tokens; token += kTile) {
    MultiplyTile<L, kFormat, kTile>(args, token);
  }
  for (; token < args.tokens; ++token) MultiplyTile<L, kFormat, 1>(args, token);
}

}  // namespace cairn::engine
