// Kernels for AVX-512 with VNNI. Nothing here may run before CpuSupports has said yes.
#if defined(__x86_64__)

#include "engine/compute/cpu/kernel_table.h"
#include "engine/compute/cpu/lanes_avx512.h"

namespace cairn::engine {

const CpuKernelTable* Avx512KernelTable() {
  static constexpr CpuKernelTable kTable = MakeKernelTable<Avx512Lanes>();
  return &kTable;
}

}  // namespace cairn::engine

#endif
