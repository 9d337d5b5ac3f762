// Asks the processor once which kernels it can run.
#include <vector>

#include "erasure/codec.h"
#include "erasure/kernel.h"

namespace cairn::erasure {

std::string_view NameOf(Kernel kernel) {
  switch (kernel) {
    case Kernel::kPortable: return "portable";
    case Kernel::kNeon: return "neon";
    case Kernel::kAvx2: return "avx2";
    case Kernel::kGfni: return "avx512+gfni";
  }
  return "unknown";
}

std::span<const Kernel> AvailableKernels() {
  static const std::vector<Kernel> kernels = [] {
    std::vector<Kernel> found = {Kernel::kPortable};
#if defined(__x86_64__)
    // These look at what the operating system saves as well, not at the processor alone.
    if (__builtin_cpu_supports("avx2")) found.push_back(Kernel::kAvx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("gfni")) {
      found.push_back(Kernel::kGfni);
    }
#elif defined(__aarch64__)
    found.push_back(Kernel::kNeon);  // Part of the base architecture.
#endif
    return found;
  }();
  return kernels;
}

const KernelTable& TableOf(Kernel kernel) {
  switch (kernel) {
#if defined(__x86_64__)
    case Kernel::kAvx2: return kAvx2Kernel;
    case Kernel::kGfni: return kGfniKernel;
#elif defined(__aarch64__)
    case Kernel::kNeon: return kNeonKernel;
#endif
    default: return kPortableKernel;
  }
}

}  // namespace cairn::erasure
