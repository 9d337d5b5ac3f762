// Which kernels this processor can run, and which are the fastest of them.
#include "engine/compute/cpu/kernels.h"
#include "kvstore/base/check.h"

namespace cairn::engine {
namespace {

#if defined(__x86_64__)
bool HasAvx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
}
bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
}
#else
bool HasAvx2() { return false; }
bool HasAvx512() { return false; }
#endif

}  // namespace

#if !defined(__x86_64__)
const CpuKernelTable* Avx2KernelTable() { return nullptr; }
const CpuKernelTable* Avx512KernelTable() { return nullptr; }
#endif

bool CpuSupports(CpuKernels kernels) {
  switch (kernels) {
    case CpuKernels::kBest:
    case CpuKernels::kPortable:
      return true;
    case CpuKernels::kAvx2:
      return HasAvx2();
    case CpuKernels::kAvx512:
      return HasAvx512();
  }
  return false;
}

std::string_view CpuKernelsName(CpuKernels kernels) {
  switch (kernels) {
    case CpuKernels::kBest:
      return "best";
    case CpuKernels::kPortable:
      return "portable";
    case CpuKernels::kAvx2:
      return "avx2";
    case CpuKernels::kAvx512:
      return "avx512";
  }
  return "unknown";
}

const CpuKernelTable& SelectCpuKernels(CpuKernels kernels) {
  KV_CHECK(CpuSupports(kernels));
  if (kernels == CpuKernels::kBest) {
    if (HasAvx512()) return *Avx512KernelTable();
    if (HasAvx2()) return *Avx2KernelTable();
    return *PortableKernelTable();
  }
  if (kernels == CpuKernels::kAvx512) return *Avx512KernelTable();
  if (kernels == CpuKernels::kAvx2) return *Avx2KernelTable();
  return *PortableKernelTable();
}

}  // namespace cairn::engine
