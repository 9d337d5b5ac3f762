// Flattens the sequences of a step.
#include "engine/compute/cpu/step_plan.h"

#include <algorithm>

#include "kvstore/base/check.h"

namespace cairn::engine {
namespace {

void CheckSequence(const SequenceStep& step, const ModelShape& shape, const KvPool& pool) {
  KV_CHECK(!step.tokens.empty());
  KV_CHECK(step.position < shape.context_max);
  KV_CHECK(step.tokens.size() <= shape.context_max - step.position);
  const uint64_t covered = uint64_t{pool.layout().block_tokens} * step.blocks.size();
  KV_CHECK(step.position + step.tokens.size() <= covered);
  for (const TokenId token : step.tokens) KV_CHECK(token < shape.vocab);
  for (const BlockIndex block : step.blocks) {
    KV_CHECK(block.value < pool.block_count());
    KV_CHECK(pool.references(block) > 0);
  }
}

void AddSequence(const SequenceStep& step, KvPool& pool, uint32_t tokens_per_piece,
                 StepPlan& plan) {
  const uint8_t* const* blocks = plan.blocks.data() + plan.blocks.size();
  for (const BlockIndex block : step.blocks) plan.blocks.push_back(pool.bytes(block).data());
  const uint32_t tokens = static_cast<uint32_t>(step.tokens.size());
  for (uint32_t i = 0; i < tokens; i += tokens_per_piece) {
    plan.pieces.push_back({.row = plan.row_count() + i,
                           .tokens = std::min(tokens_per_piece, tokens - i),
                           .position = step.position + i,
                           .blocks = blocks});
  }
  for (uint32_t i = 0; i < tokens; ++i) {
    const uint32_t position = step.position + i;
    const BlockIndex block = step.blocks[position / pool.layout().block_tokens];
    plan.rows.push_back(
        {.token = step.tokens[i], .position = position, .block = pool.bytes(block).data()});
  }
  if (step.wants_logits) plan.logits_rows.push_back(plan.row_count() - 1);
}

}  // namespace

void PlanStep(std::span<const SequenceStep> steps, const ModelShape& shape, KvPool& pool,
              uint32_t tokens_per_piece, StepPlan& plan) {
  plan.rows.clear();
  plan.pieces.clear();
  plan.logits_rows.clear();
  plan.blocks.clear();
  size_t blocks = 0;
  for (const SequenceStep& step : steps) {
    CheckSequence(step, shape, pool);
    blocks += step.blocks.size();
  }
  plan.blocks.reserve(blocks);  // Pieces point into it.
  for (const SequenceStep& step : steps) AddSequence(step, pool, tokens_per_piece, plan);
}

}  // namespace cairn::engine
