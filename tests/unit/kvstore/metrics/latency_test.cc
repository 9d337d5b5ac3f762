// Which bucket a time falls into.
#include "kvstore/metrics/latency.h"

#include <gtest/gtest.h>

#include <numeric>

namespace cairn::kv {
namespace {

TEST(LatencyHistogram, ATimeIsInTheFirstBucketThatHoldsIt) {
  for (size_t i = 0; i < kLatencyBuckets; ++i) {
    LatencyHistogram exact, above;
    exact.Add(LatencyBound(i));
    above.Add(LatencyBound(i) + Nanos{1});
    EXPECT_EQ(exact.buckets[i], 1u) << i;
    EXPECT_EQ(above.buckets[i], 0u) << i;
    if (i + 1 < kLatencyBuckets) {
      EXPECT_EQ(above.buckets[i + 1], 1u) << i;
    }
  }
}

TEST(LatencyHistogram, CountsWhatNoBucketHolds) {
  LatencyHistogram latency;
  latency.Add(Seconds(100));
  latency.Add(Nanos{0});
  latency.Add(Nanos{-5});
  EXPECT_EQ(latency.count, 3u);
  EXPECT_EQ(latency.buckets[0], 2u);
  EXPECT_EQ(std::accumulate(latency.buckets.begin(), latency.buckets.end(), uint64_t{0}), 2u);
  EXPECT_EQ(latency.sum_nanos, uint64_t{100'000'000'000});
}

}  // namespace
}  // namespace cairn::kv
