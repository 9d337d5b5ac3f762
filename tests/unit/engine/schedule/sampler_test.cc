// The sampler: greedy ties, the nucleus, frequencies, seeds.
#include "engine/schedule/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cairn::engine {
namespace {

SamplingParams At(float temperature, float top_p) {
  return {.temperature = temperature, .top_p = top_p, .seed = 7};
}

TEST(Sampler, GreedyTakesTheLargestAndTheLowestIdAmongEquals) {
  Sampler sampler(At(0, 1), 0);
  EXPECT_EQ(sampler.Sample(std::vector<float>{1, 5, 5, 2}), 1u);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(sampler.Sample(std::vector<float>{nan, -3, nan, -2}), 3u);
}

TEST(Sampler, FrequenciesFollowTheSoftmax) {
  const std::vector<float> logits = {std::log(1.0f), std::log(2.0f), std::log(5.0f)};
  Sampler sampler(At(1, 1), 0);
  std::vector<int> counts(3);
  for (int i = 0; i < 80000; ++i) ++counts[sampler.Sample(logits)];
  EXPECT_NEAR(counts[0], 10000, 500);
  EXPECT_NEAR(counts[1], 20000, 700);
  EXPECT_NEAR(counts[2], 50000, 900);
}

TEST(Sampler, TemperatureSharpens) {
  const std::vector<float> logits = {0, std::log(3.0f)};
  Sampler sampler(At(0.5f, 1), 0);  // Odds become 1 : 9.
  int likelier = 0;
  for (int i = 0; i < 10000; ++i) likelier += static_cast<int>(sampler.Sample(logits));
  EXPECT_NEAR(likelier, 9000, 200);
}

TEST(Sampler, TopPKeepsTheSmallestSetThatReachesIt) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.15f),
                                     std::log(0.05f)};
  Sampler sampler(At(1, 0.79f), 0);
  for (int i = 0; i < 2000; ++i) EXPECT_LT(sampler.Sample(logits), 2u);
  Sampler narrow(At(1, 0.01f), 0);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(narrow.Sample(logits), 0u);
}

TEST(Sampler, SameSeedSameTokensOtherSeedOthers) {
  const std::vector<float> logits(100, 0.0f);
  Sampler first(At(1, 0.9f), 1);
  Sampler again(At(1, 0.9f), 2);  // The request's own seed wins.
  SamplingParams unseeded = At(1, 0.9f);
  unseeded.seed.reset();
  Sampler other(unseeded, 2);
  int differences = 0;
  for (int i = 0; i < 100; ++i) {
    const TokenId token = first.Sample(logits);
    EXPECT_EQ(again.Sample(logits), token);
    differences += other.Sample(logits) != token ? 1 : 0;
  }
  EXPECT_GT(differences, 50);
}

}  // namespace
}  // namespace cairn::engine
