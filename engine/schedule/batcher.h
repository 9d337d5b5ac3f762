// Decides which tokens of which sequences the next step computes. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cairn::engine {

struct BatchLimits {
  uint32_t step_tokens_max = 512;  // At least 1.
  uint32_t sequences_max = 64;     // In one step. At least 1.
};

// A part of the step: the next `tokens` tokens of sequence `sequence`.
struct BatchShare {
  size_t sequence = 0;
  uint32_t tokens = 0;
  auto operator<=>(const BatchShare&) const = default;
};

// `pending[i]` counts sequence i's tokens that are known but not computed: 1 while it decodes, more
// while its prompt is computed, 0 when it waits for something else.
//
// Sequences that decode come first, so that a long prompt delays nobody by more than one step; what
// is left of the budget goes to prompts in the order given, in chunks. With more sequences than
// fit, the first ones win: the caller rotates them.
std::vector<BatchShare> PlanStep(std::span<const uint32_t> pending, const BatchLimits& limits);

}  // namespace cairn::engine
