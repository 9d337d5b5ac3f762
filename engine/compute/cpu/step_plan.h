// What a step touches, worked out once for all layers: rows, blocks, and the pieces of attention.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/compute/backend.h"

namespace cairn::engine {

// One token: a row of every activation matrix of the step.
struct TokenRow {
  TokenId token = 0;
  uint32_t position = 0;
  uint8_t* block = nullptr;  // The KV block that holds the position.
};

// Consecutive tokens of one sequence, few enough for one call of the attention kernel.
struct AttentionPiece {
  uint32_t row = 0;  // Of the first token.
  uint32_t tokens = 0;
  uint32_t position = 0;
  const uint8_t* const* blocks = nullptr;  // Of the sequence.
};

struct StepPlan {
  std::vector<TokenRow> rows;
  std::vector<AttentionPiece> pieces;
  std::vector<uint32_t> logits_rows;  // In the order of the steps.
  std::vector<const uint8_t*> blocks;

  uint32_t row_count() const { return static_cast<uint32_t>(rows.size()); }
};

// Fills `plan`, whose memory is reused. A check fails on a token, position or block out of range.
void PlanStep(std::span<const SequenceStep> steps, const ModelShape& shape, KvPool& pool,
              uint32_t tokens_per_piece, StepPlan& plan);

}  // namespace cairn::engine
