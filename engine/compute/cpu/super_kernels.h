// Products with weights in blocks of 256 columns (Q4_K, Q6_K). Included by kernels_*.cc only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/compute/cpu/block_kernels.h"
#include "engine/compute/cpu/kernels.h"
#include "engine/compute/cpu/packed_matrix.h"

namespace cairn::engine {

// kSuper4: eight blocks of 32 with 6-bit scales and minima of their own.
template <class L, int kTokens>
void MultiplySuper4(const MatMulArgs& args, uint32_t token) {
  const uint32_t supers = args.columns / 256;
  typename L::Float sum[kTokens], low[kTokens];
  for (int t = 0; t < kTokens; ++t) sum[t] = low[t] = L::Broadcast(0.0f);
  for (uint32_t super = 0; super < supers; ++super) {
    const uint8_t* source = args.panel + super * kSuper4Bytes;
    const uint8_t* meta = source + 8 * CodeBlock<L, 4>::kBytes;  // Scales, minima: [8][16] each.
    typename L::Int total[kTokens], total_low[kTokens];
    for (int t = 0; t < kTokens; ++t) total[t] = total_low[t] = L::BroadcastInt(0);
    for (uint32_t block = 0; block < 8; ++block) {
      const CodeBlock<L, 4> weights(source + block * CodeBlock<L, 4>::kBytes);
      const typename L::Int scale = L::LoadUnsigned8(meta + 16 * block);
      const typename L::Int minimum = L::LoadUnsigned8(meta + 128 + 16 * block);
      for (int t = 0; t < kTokens; ++t) {
        const size_t row = token + static_cast<size_t>(t);
        const int8_t* x = args.quantised.codes + row * args.columns + 256 * super + 32 * block;
        const int32_t* x_sums =
            args.quantised.sums + row * (args.columns / 16) + 16 * super + 2 * block;
        const typename L::Int dot = weights.template Dot<true, 0, 8>(L::BroadcastInt(0), x);
        total[t] = L::AddInt(total[t], L::MulInt(scale, dot));
        total_low[t] =
            L::AddInt(total_low[t], L::MulInt(minimum, L::BroadcastInt(x_sums[0] + x_sums[1])));
      }
    }
    const uint16_t* halves = reinterpret_cast<const uint16_t*>(meta + 256);
    const typename L::Float scale = L::LoadHalf(halves);
    const typename L::Float minimum = L::LoadHalf(halves + 16);
    for (int t = 0; t < kTokens; ++t) {
      const size_t row = token + static_cast<size_t>(t);
      const typename L::Float x_scale = L::Broadcast(args.quantised.scales[row * supers + super]);
      sum[t] = L::Fma(L::Mul(scale, x_scale), L::ToFloat(total[t]), sum[t]);
      low[t] = L::Fma(L::Mul(minimum, x_scale), L::ToFloat(total_low[t]), low[t]);
    }
  }
  for (int t = 0; t < kTokens; ++t) {
    L::Store(args.output + (token + static_cast<size_t>(t)) * args.output_stride,
             L::Sub(sum[t], low[t]));
  }
}

// kSuper6: sixteen blocks of 16 with signed 8-bit scales; the zero code is 32.
template <class L, int kTokens>
void MultiplySuper6(const MatMulArgs& args, uint32_t token) {
  const uint32_t supers = args.columns / 256;
  typename L::Float sum[kTokens];
  for (auto& lanes : sum) lanes = L::Broadcast(0.0f);
  for (uint32_t super = 0; super < supers; ++super) {
    const uint8_t* source = args.panel + super * kSuper6Bytes;
    const uint8_t* meta = source + 8 * CodeBlock<L, 8>::kBytes;  // Scales: [16][16].
    typename L::Int total[kTokens];
    for (auto& lanes : total) lanes = L::BroadcastInt(0);
    for (uint32_t block = 0; block < 8; ++block) {
      const CodeBlock<L, 8> weights(source + block * CodeBlock<L, 8>::kBytes);
      const typename L::Int first_scale = L::LoadSigned8(meta + 32 * block);
      const typename L::Int second_scale = L::LoadSigned8(meta + 32 * block + 16);
      for (int t = 0; t < kTokens; ++t) {
        const size_t row = token + static_cast<size_t>(t);
        const int8_t* x = args.quantised.codes + row * args.columns + 256 * super + 32 * block;
        const int32_t* x_sums =
            args.quantised.sums + row * (args.columns / 16) + 16 * super + 2 * block;
        const auto first = weights.template Dot<true, 0, 4>(L::BroadcastInt(-32 * x_sums[0]), x);
        const auto second = weights.template Dot<true, 4, 8>(L::BroadcastInt(-32 * x_sums[1]), x);
        total[t] = L::AddInt(
            total[t], L::AddInt(L::MulInt(first_scale, first), L::MulInt(second_scale, second)));
      }
    }
    const typename L::Float scale = L::LoadHalf(reinterpret_cast<const uint16_t*>(meta + 256));
    for (int t = 0; t < kTokens; ++t) {
      const size_t row = token + static_cast<size_t>(t);
      const typename L::Float x_scale = L::Broadcast(args.quantised.scales[row * supers + super]);
      sum[t] = L::Fma(L::Mul(scale, x_scale), L::ToFloat(total[t]), sum[t]);
    }
  }
  for (int t = 0; t < kTokens; ++t) {
    L::Store(args.output + (token + static_cast<size_t>(t)) * args.output_stride, sum[t]);
  }
}

}  // namespace cairn::engine
