// The batcher: who gets which part of a step.
#include "engine/schedule/batcher.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kvstore/base/random.h"

namespace cairn::engine {
namespace {

using Shares = std::vector<BatchShare>;

TEST(PlanStep, DecodesComeBeforePrompts) {
  const std::vector<uint32_t> pending = {1000, 1, 300, 1};
  EXPECT_EQ(PlanStep(pending, {.step_tokens_max = 512, .sequences_max = 8}),
            (Shares{{1, 1}, {3, 1}, {0, 510}}));
}

TEST(PlanStep, LeftoverGoesToTheNextPrompt) {
  const std::vector<uint32_t> pending = {100, 300, 300};
  EXPECT_EQ(PlanStep(pending, {.step_tokens_max = 512, .sequences_max = 8}),
            (Shares{{0, 100}, {1, 300}, {2, 112}}));
}

TEST(PlanStep, NothingPendingMeansNoShareOfTokens) {
  EXPECT_TRUE(PlanStep({}, {}).empty());
  const std::vector<uint32_t> pending = {0, 0};
  EXPECT_TRUE(PlanStep(pending, {}).empty());
}

TEST(PlanStep, NeverPassesItsLimitsAndNeverIdlesWithWork) {
  kv::Random random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint32_t> pending(random.Below(12));
    for (uint32_t& tokens : pending) tokens = static_cast<uint32_t>(random.Below(40));
    BatchLimits limits;
    limits.step_tokens_max = static_cast<uint32_t>(1 + random.Below(64));
    limits.sequences_max = static_cast<uint32_t>(1 + random.Below(6));
    uint32_t total = 0;
    const Shares shares = PlanStep(pending, limits);
    for (const BatchShare& share : shares) {
      EXPECT_GT(share.tokens, 0u);
      EXPECT_LE(share.tokens, pending[share.sequence]);
      total += share.tokens;
    }
    EXPECT_LE(total, limits.step_tokens_max);
    EXPECT_LE(shares.size(), limits.sequences_max);
    const bool work = std::any_of(pending.begin(), pending.end(), [](uint32_t t) { return t > 0; });
    EXPECT_EQ(!shares.empty(), work);
  }
}

}  // namespace
}  // namespace cairn::engine
