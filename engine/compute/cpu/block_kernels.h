// Products with weights in blocks of 32 columns (Q4_0, Q4_1, Q8_0). Included by kernels_*.cc only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/compute/cpu/kernels.h"
#include "engine/compute/cpu/packed_matrix.h"

namespace cairn::engine {

// 32 columns of 16 rows as eight registers of codes, each with four columns.
template <class L, int kBits>
struct CodeBlock {
  static constexpr size_t kBytes = 64 * kBits;
  typename L::Codes part[8];

  explicit CodeBlock(const uint8_t* source) {
    if constexpr (kBits == 4) {
      for (int i = 0; i < 4; ++i) {
        const typename L::Codes pair = L::LoadCodes(source + 64 * i);
        part[i] = L::LowNibbles(pair);
        part[i + 4] = L::HighNibbles(pair);
      }
    } else {
      for (int i = 0; i < 8; ++i) part[i] = L::LoadCodes(source + 64 * i);
    }
  }

  // start + codes . x over parts [kFrom, kTo). Two chains: integer sums are exact in any order.
  template <bool kSmall, int kFrom, int kTo>
  typename L::Int Dot(typename L::Int start, const int8_t* x) const {
    typename L::Int even = start, odd = L::BroadcastInt(0);
    for (int i = kFrom; i < kTo; i += 2) {
      if constexpr (kSmall) {
        even = L::DotSmall(even, part[i], x + 4 * i);
        odd = L::DotSmall(odd, part[i + 1], x + 4 * i + 4);
      } else {
        even = L::Dot(even, part[i], x + 4 * i);
        odd = L::Dot(odd, part[i + 1], x + 4 * i + 4);
      }
    }
    return L::AddInt(even, odd);
  }
};

// kBits4, kBits4Min, kBits8.
template <class L, int kBits, bool kHasMin, int kTokens>
void MultiplyBlocks(const MatMulArgs& args, uint32_t token) {
  const uint32_t blocks = args.columns / 32;
  const uint16_t* scales = reinterpret_cast<const uint16_t*>(args.panel);
  const uint16_t* minima = scales + size_t{16} * blocks;
  const uint8_t* codes = args.panel + BlockCodesOffset(blocks, kHasMin);
  const int8_t* x = args.quantised.codes + size_t{token} * args.columns;
  const float* x_scales = args.quantised.scales + size_t{token} * blocks;
  const int32_t* x_sums = args.quantised.sums + size_t{token} * blocks;
  const float* x_scaled_sums = args.quantised.scaled_sums + size_t{token} * blocks;
  constexpr int32_t kZeroCode = kHasMin ? 0 : (kBits == 4 ? 8 : 128);

  typename L::Float sum[kTokens];
  for (auto& lanes : sum) lanes = L::Broadcast(0.0f);
  for (uint32_t block = 0; block < blocks; ++block) {
    const CodeBlock<L, kBits> weights(codes + block * CodeBlock<L, kBits>::kBytes);
    const typename L::Float scale = L::LoadHalf(scales + 16 * block);
    for (int t = 0; t < kTokens; ++t) {
      const size_t at = size_t{blocks} * static_cast<size_t>(t) + block;
      const typename L::Int start = L::BroadcastInt(-kZeroCode * x_sums[at]);
      const typename L::Int dot = weights.template Dot<kBits == 4, 0, 8>(start, x + 32 * at);
      sum[t] = L::Fma(L::Mul(scale, L::Broadcast(x_scales[at])), L::ToFloat(dot), sum[t]);
    }
  }
  if constexpr (kHasMin) {
    typename L::Float low[kTokens];
    for (auto& lanes : low) lanes = L::Broadcast(0.0f);
    for (uint32_t block = 0; block < blocks; ++block) {
      const typename L::Float minimum = L::LoadHalf(minima + 16 * block);
      for (int t = 0; t < kTokens; ++t) {
        const size_t at = size_t{blocks} * static_cast<size_t>(t) + block;
        low[t] = L::Fma(minimum, L::Broadcast(x_scaled_sums[at]), low[t]);
      }
    }
    for (int t = 0; t < kTokens; ++t) sum[t] = L::Add(sum[t], low[t]);
  }
  for (int t = 0; t < kTokens; ++t) {
    L::Store(args.output + (token + static_cast<size_t>(t)) * args.output_stride, sum[t]);
  }
}

}  // namespace cairn::engine
