// The reference backend: the model on the CPU, with kernels chosen at run time.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "engine/compute/backend.h"

namespace cairn::engine {

enum class CpuKernels { kBest, kPortable, kAvx2, kAvx512 };

// All kernels give the same bits; they differ in speed.
bool CpuSupports(CpuKernels kernels);
std::string_view CpuKernelsName(CpuKernels kernels);

struct CpuBackendOptions {
  CpuKernels kernels = CpuKernels::kBest;
  uint32_t threads = 2;            // The caller of Step is one of them.
  uint32_t step_tokens_max = 512;  // Bounds the working memory.
};

// Packs the weights into its own memory (about the size of the file). The file under `model` and
// the `pool` must outlive the result. `pool` has the layout PageLayout::For(model.shape, any
// block_tokens). kInvalid: the CPU lacks the forced kernels, or a limit of the kernels is passed
// (named).
kv::Result<std::unique_ptr<Backend>> CreateCpuBackend(const LlamaModel& model, KvPool& pool,
                                                      const CpuBackendOptions& options);

}  // namespace cairn::engine
