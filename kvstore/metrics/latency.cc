// The bucket is the bit length of the time in microseconds, rounded up.
#include "kvstore/metrics/latency.h"

#include <algorithm>
#include <bit>

#include "kvstore/base/units.h"

namespace cairn::kv {

void LatencyHistogram::Add(Nanos took) {
  const auto nanos = static_cast<uint64_t>(std::max<int64_t>(took.value, 0));
  const uint64_t micros = std::max<uint64_t>(DivCeil(nanos, 1000), 1);
  const auto bucket = static_cast<size_t>(std::bit_width(micros - 1));
  if (bucket < kLatencyBuckets) ++buckets[bucket];
  ++count;
  sum_nanos += nanos;
}

}  // namespace cairn::kv
