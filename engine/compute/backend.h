// Runs the model: tokens and KV blocks in, logits out.
//
// Deterministic and batch-invariant: the KV written and the logits of a position depend, bit for
// bit, only on the tokens up to it. Not on how they were cut into steps, what else was in the
// batch, the number of threads, or whether earlier KV was computed here or read back from a store.
#pragma once

#include <cstdint>
#include <span>

#include "engine/api/token.h"
#include "engine/compute/kv_pool.h"
#include "engine/model/llama_model.h"

namespace cairn::engine {

// Some consecutive tokens of one sequence: a chunk of a prompt, or the one token of a decode step.
struct SequenceStep {
  std::span<const TokenId> tokens;     // At least one, each below shape().vocab.
  uint32_t position = 0;               // Of tokens[0]; everything before it lies in `blocks`.
  std::span<const BlockIndex> blocks;  // Of the sequence from position 0, in order; they cover
                                       // position + tokens.size() positions. Those that this step
                                       // writes are held by this sequence alone.
  bool wants_logits = false;           // For the last of `tokens`.
};

// Not thread-safe: one Step at a time.
class Backend {
 public:
  virtual ~Backend() = default;

  // Writes the KV of all tokens, and into `logits` one row of shape().vocab floats for each step
  // that wants them, in the order of `steps`. The steps are of different sequences and have
  // together at most step_tokens_max() tokens. A check fails on a token, position or block out of
  // range.
  virtual void Step(std::span<const SequenceStep> steps, std::span<float> logits) = 0;

  virtual const ModelShape& shape() const = 0;
  virtual KvPool& pool() = 0;
  virtual uint32_t step_tokens_max() const = 0;
};

}  // namespace cairn::engine
