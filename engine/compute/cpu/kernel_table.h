// Fills a kernel table for one lanes type. Included by the kernels_*.cc files only.
#pragma once

#include "engine/compute/cpu/attention_kernels.h"
#include "engine/compute/cpu/kernels.h"
#include "engine/compute/cpu/matmul_kernels.h"
#include "engine/compute/cpu/row_kernels.h"

namespace cairn::engine {

template <class L>
constexpr CpuKernelTable MakeKernelTable() {
  return {
      .multiply = {MultiplyPanel<L, PackFormat::kFloat>, MultiplyPanel<L, PackFormat::kHalf>,
                   MultiplyPanel<L, PackFormat::kBits4>, MultiplyPanel<L, PackFormat::kBits4Min>,
                   MultiplyPanel<L, PackFormat::kBits8>, MultiplyPanel<L, PackFormat::kSuper4>,
                   MultiplyPanel<L, PackFormat::kSuper6>},
      .attend = Attend<L>,
      .quantise32 = Quantise32<L>,
      .quantise256 = Quantise256<L>,
      .rms_norm = RmsNorm<L>,
      .swiglu = SwiGlu<L>,
      .add = Add<L>,
      .to_half = ToHalf<L>};
}

}  // namespace cairn::engine
