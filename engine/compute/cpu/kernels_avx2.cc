// Kernels for AVX2 with FMA and F16C. Nothing here may run before CpuSupports has said yes.
#if defined(__x86_64__)

#include "engine/compute/cpu/kernel_table.h"
#include "engine/compute/cpu/lanes_avx2.h"

namespace cairn::engine {

const CpuKernelTable* Avx2KernelTable() {
  static constexpr CpuKernelTable kTable = MakeKernelTable<Avx2Lanes>();
  return &kTable;
}

}  // namespace cairn::engine

#endif
