// Kernels in plain C++: the reference, and all there is where no other table is compiled.
#include "engine/compute/cpu/kernel_table.h"
#include "engine/compute/cpu/lanes_portable.h"

namespace cairn::engine {

const CpuKernelTable* PortableKernelTable() {
  static constexpr CpuKernelTable kTable = MakeKernelTable<PortableLanes>();
  return &kTable;
}

}  // namespace cairn::engine
