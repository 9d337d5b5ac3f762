// Shares one step's token budget out: decodes first, then chunks of prompts.
#include "engine/schedule/batcher.h"

#include <algorithm>

namespace cairn::engine {

std::vector<BatchShare> PlanStep(std::span<const uint32_t> pending, const BatchLimits& limits) {
  std::vector<BatchShare> shares;
  uint32_t budget = limits.step_tokens_max;
  const auto take = [&](size_t sequence) {
    if (budget == 0 || shares.size() == limits.sequences_max) return;
    const uint32_t tokens = std::min(pending[sequence], budget);
    shares.push_back({sequence, tokens});
    budget -= tokens;
  };
  for (size_t i = 0; i < pending.size(); ++i) {
    if (pending[i] == 1) take(i);
  }
  for (size_t i = 0; i < pending.size(); ++i) {
    if (pending[i] > 1) take(i);
  }
  return shares;
}

}  // namespace cairn::engine
