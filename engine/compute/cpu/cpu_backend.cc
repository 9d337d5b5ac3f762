// Puts the pieces of the CPU backend together.
#include "engine/compute/cpu/cpu_backend.h"

#include <string>

#include "engine/compute/cpu/forward.h"
#include "kvstore/base/check.h"

namespace cairn::engine {
namespace {

using kv::Code;
using kv::Result;
using kv::Status;

class CpuBackend final : public Backend {
 public:
  CpuBackend(const LlamaModel& model, KvPool& pool, const CpuBackendOptions& options)
      : shape_(model.shape),
        options_(options),
        pool_(pool),
        weights_(model),
        forward_(shape_, weights_, pool.layout(), SelectCpuKernels(options.kernels),
                 {.rows_max = options.step_tokens_max, .threads = options.threads}) {}

  void Step(std::span<const SequenceStep> steps, std::span<float> logits) override {
    PlanStep(steps, shape_, pool_, forward_.tokens_per_piece(), plan_);
    KV_CHECK(plan_.row_count() <= options_.step_tokens_max);
    if (plan_.row_count() > 0) forward_.Run(plan_, logits);
  }

  const ModelShape& shape() const override { return shape_; }
  KvPool& pool() override { return pool_; }
  uint32_t step_tokens_max() const override { return options_.step_tokens_max; }

 private:
  const ModelShape shape_;
  const CpuBackendOptions options_;
  KvPool& pool_;
  const PackedModel weights_;
  StepPlan plan_;  // Reused from step to step.
  Forward forward_;
};

// A matrix that an input of `columns` values is multiplied with must have whole blocks: GGUF rows
// do.
Status CheckLimits(const ModelShape& shape, const CpuBackendOptions& options) {
  if (!CpuSupports(options.kernels)) {
    return Status(Code::kInvalid, "this processor has no " +
                                      std::string(CpuKernelsName(options.kernels)) + " kernels");
  }
  if (options.threads == 0 || options.threads > 1024 || options.step_tokens_max == 0) {
    return Status(Code::kInvalid, "threads must be from 1 to 1024, step_tokens_max at least 1");
  }
  if (shape.head_dim > kHeadDimMax) {
    return Status(Code::kInvalid, "heads of " + std::to_string(shape.head_dim) +
                                      " values are not supported: at most " +
                                      std::to_string(kHeadDimMax) + " are");
  }
  if (shape.heads / shape.kv_heads > kAttentionRowsMax) {
    return Status(Code::kInvalid, "more than " + std::to_string(kAttentionRowsMax) +
                                      " query heads per key/value head are not supported");
  }
  return Status();
}

}  // namespace

Result<std::unique_ptr<Backend>> CreateCpuBackend(const LlamaModel& model, KvPool& pool,
                                                  const CpuBackendOptions& options) {
  KV_RETURN_IF_ERROR(CheckLimits(model.shape, options));
  const PageLayout& layout = pool.layout();
  KV_CHECK(layout.Describe() == PageLayout::For(model.shape, layout.block_tokens).Describe());
  return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(model, pool, options));
}

}  // namespace cairn::engine
