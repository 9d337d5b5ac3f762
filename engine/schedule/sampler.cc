// Greedy and nucleus sampling.
#include "engine/schedule/sampler.h"

#include <algorithm>
#include <cmath>

namespace cairn::engine {
namespace {

TokenId LargestOf(std::span<const float> logits) {
  TokenId best = 0;
  for (TokenId id = 1; id < logits.size(); ++id) {
    if (logits[id] > logits[best] || std::isnan(logits[best])) best = id;
  }
  return best;
}

// Likelier first; among equals the lower id.
bool LessLikely(const std::pair<double, TokenId>& a, const std::pair<double, TokenId>& b) {
  return a.first < b.first || (a.first == b.first && a.second > b.second);
}

}  // namespace

Sampler::Sampler(const SamplingParams& params, uint64_t seed)
    : params_(params), random_(params.seed.value_or(seed)) {}

TokenId Sampler::Sample(std::span<const float> logits) {
  const TokenId best = LargestOf(logits);
  if (params_.temperature <= 0 || !std::isfinite(logits[best])) return best;
  return Draw(logits, logits[best]);
}

TokenId Sampler::Draw(std::span<const float> logits, float largest) {
  candidates_.clear();
  double total = 0;
  for (TokenId id = 0; id < logits.size(); ++id) {
    const double weight = std::exp((double{logits[id]} - largest) / double{params_.temperature});
    if (!(weight > 1e-12)) continue;
    candidates_.emplace_back(weight, id);
    total += weight;
  }
  double kept = total;
  size_t kept_count = candidates_.size();
  if (params_.top_p < 1) {
    std::sort(candidates_.begin(), candidates_.end(),
              [](const auto& a, const auto& b) { return LessLikely(b, a); });
    kept = 0;
    kept_count = 0;
    do {
      kept += candidates_[kept_count++].first;
    } while (kept_count < candidates_.size() && kept < double{params_.top_p} * total);
  }
  double mark = random_.Unit() * kept;
  for (size_t i = 0; i + 1 < kept_count; ++i) {
    mark -= candidates_[i].first;
    if (mark < 0) return candidates_[i].second;
  }
  return candidates_[kept_count - 1].second;
}

}  // namespace cairn::engine
