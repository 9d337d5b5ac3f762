// The forward pass of the llama family over the rows of one step.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "engine/compute/cpu/activations.h"
#include "engine/compute/cpu/packed_model.h"
#include "engine/compute/cpu/rope.h"
#include "engine/compute/cpu/step_plan.h"
#include "engine/compute/cpu/thread_pool.h"

namespace cairn::engine {

// Owns the working memory. Work is shared out in pieces whose results do not depend on who does
// them or on what else is in the step.
class Forward {
 public:
  struct Limits {
    uint32_t rows_max = 0;
    uint32_t threads = 1;
  };

  // All must outlive this.
  Forward(const ModelShape& shape, const PackedModel& model, const PageLayout& layout,
          const CpuKernelTable& kernels, Limits limits);

  // Writes the KV of all rows of `plan`, and a row of logits for each of its logits_rows.
  void Run(const StepPlan& plan, std::span<float> logits);

  uint32_t tokens_per_piece() const { return tokens_per_piece_; }

 private:
  struct Product {
    const PackedMatrix* matrix;
    FloatRows* output;
  };

  void RunLayer(const StepPlan& plan, uint32_t layer);
  void Embed(const StepPlan& plan);
  void NormAndQuantise(uint32_t rows, const PaddedFloats& weight, FormSet forms, bool add_delta);
  void Multiply(std::initializer_list<Product> products, const FloatRows& source, uint32_t rows);
  void TurnAndStore(const StepPlan& plan, uint32_t layer);
  void Attend(const StepPlan& plan, uint32_t layer);
  void FeedForward(const PackedLayer& layer, uint32_t rows);
  void WriteLogits(const StepPlan& plan, std::span<float> logits);
  // Calls body(row) for all rows, some at a time on each thread.
  template <typename Body>
  void ForRows(uint32_t rows, const Body& body);

  const ModelShape& shape_;
  const PackedModel& model_;
  const PageLayout& layout_;
  const CpuKernelTable& kernels_;
  const Rope rope_;
  const uint32_t tokens_per_piece_;

  ThreadPool pool_;
  FloatRows hidden_;  // The residual stream.
  FloatRows delta_;   // What the last block adds to it.
  FloatRows normed_;  // What the next matrices read.
  FloatRows queries_, keys_, values_, attended_;
  FloatRows gate_, up_;
  FloatRows angles_;
  FloatRows scratch_;  // Attention's, one row for each thread.
  FloatRows logits_;   // kLogitsRows of the vocabulary.
  QuantisedForms forms_;
};

}  // namespace cairn::engine
