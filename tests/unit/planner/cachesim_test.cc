// The fast simulators against the naive ones, over random traces and every capacity and TTL.
#include <gtest/gtest.h>

#include "tests/unit/planner/naive_caches.h"
#include "tools/cachesim/lru_curve.h"
#include "tools/cachesim/s3_fifo.h"
#include "tools/cachesim/ttl_curve.h"

namespace cairn::tools {
namespace {

constexpr uint64_t kBlockTokens = 16;
constexpr int kSeeds = 12;

std::vector<std::vector<NaiveRequest>> Traces() {
  std::vector<std::vector<NaiveRequest>> traces;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    traces.push_back(seed % 3 == 0 ? UnchainedTrace(seed, kBlockTokens, 250)
                                   : RandomTrace(seed, kBlockTokens, 250));
  }
  return traces;
}

TEST(LruCurve, EqualsANaiveLruAtEveryCapacity) {
  for (const auto& trace : Traces()) {
    LruCurve curve(kBlockTokens);
    for (const NaiveRequest& request : trace) curve.Add(request.access());
    for (size_t capacity = 1; capacity <= curve.distinct_blocks() + 2;
         capacity += 1 + capacity / 9) {
      ASSERT_DOUBLE_EQ(curve.HitRate(capacity), NaiveLru(trace, kBlockTokens, capacity))
          << "capacity " << capacity;
    }
    EXPECT_DOUBLE_EQ(curve.IdealHitRate(), curve.HitRate(curve.distinct_blocks()));
    EXPECT_EQ(curve.HitRate(0), 0);
  }
}

TEST(LruCurve, RenumbersItsSlotsWithoutForgettingTheOrder) {
  // 70,000 blocks in requests of 1,000: more touches than the first array of slots can hold.
  LruCurve curve(1);
  std::vector<uint64_t> blocks(1'000);
  for (int round = 0; round < 3; ++round) {
    for (uint64_t chunk = 0; chunk < 70; ++chunk) {
      for (uint64_t i = 0; i < blocks.size(); ++i) blocks[i] = chunk * 1'000 + i;
      curve.Add({.time_ms = 0, .input_tokens = 1'000, .blocks = blocks});
    }
  }
  EXPECT_EQ(curve.HitRate(69'000), 0);  // A loop larger than the cache never hits under LRU ...
  EXPECT_DOUBLE_EQ(curve.HitRate(70'000), 2.0 / 3);  // ... and always does when it fits.
}

TEST(LruCurve, CountsPartialBlocksByTheirTokens) {
  LruCurve curve(512);
  const std::vector<uint64_t> blocks = {7, 8};
  curve.Add({.time_ms = 0, .input_tokens = 600, .blocks = blocks});
  curve.Add({.time_ms = 1, .input_tokens = 600, .blocks = blocks});
  EXPECT_DOUBLE_EQ(curve.IdealHitRate(), 0.5);
  EXPECT_DOUBLE_EQ(curve.HitRate(1), 512.0 / 1'200);  // The root survives, its suffix goes first.
  EXPECT_EQ(curve.unique_tokens(), 600u);
  EXPECT_EQ(curve.requests_without_hit(), 1u);
}

TEST(TtlCurve, EqualsANaiveCacheForEveryTtl) {
  const std::vector<int64_t> ttls_ms = {0, 1, 700, 3'000, 20'000, 90'000, 1'000'000};
  for (const auto& trace : Traces()) {
    TtlCurve curve(kBlockTokens, ttls_ms);
    for (const NaiveRequest& request : trace) curve.Add(request.access());
    for (size_t i = 0; i < ttls_ms.size(); ++i) {
      ASSERT_DOUBLE_EQ(curve.HitRateRefreshed(i),
                       NaiveTtl(trace, kBlockTokens, ttls_ms[i], NaiveTtlKind::kRefreshed));
      ASSERT_DOUBLE_EQ(curve.HitRateFixed(i),
                       NaiveTtl(trace, kBlockTokens, ttls_ms[i], NaiveTtlKind::kFixed));
      EXPECT_LE(curve.HitRateFixed(i), curve.HitRateRefreshed(i));
    }
  }
}

TEST(TtlCurve, ResidentTokensFollowLittlesLaw) {
  // One block of 10 tokens, used at 0 s and 4 s; TTL 10 s: resident for 14 s, over 2 requests.
  TtlCurve curve(10, {1'000, 10'000});
  const std::vector<uint64_t> block = {1};
  curve.Add({.time_ms = 0, .input_tokens = 10, .blocks = block});
  curve.Add({.time_ms = 4'000, .input_tokens = 10, .blocks = block});
  EXPECT_DOUBLE_EQ(curve.ResidentTokensPerRate(1), 10.0 * 14 / 2);
  EXPECT_DOUBLE_EQ(curve.ResidentTokensPerRate(0), 10.0 * 2 / 2);  // Twice for one second.
}

TEST(S3Fifo, EqualsANaiveOneAtEveryCapacity) {
  for (const auto& trace : Traces()) {
    for (const size_t capacity : {1, 2, 5, 11, 20, 37, 80, 300}) {
      S3Fifo cache(kBlockTokens, capacity);
      for (const NaiveRequest& request : trace) cache.Add(request.access());
      ASSERT_DOUBLE_EQ(cache.HitRate(), NaiveS3Fifo(trace, kBlockTokens, capacity))
          << "capacity " << capacity;
    }
  }
}

}  // namespace
}  // namespace cairn::tools
