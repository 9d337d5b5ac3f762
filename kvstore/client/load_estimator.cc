// Moving averages in logarithms: being off by a factor weighs the same in both directions.
#include "kvstore/client/load_estimator.h"

#include <algorithm>
#include <cmath>

#include "kvstore/base/units.h"

namespace cairn::kv {
namespace {

constexpr double kWeight = 0.1;
constexpr double kErrorMax = 4.0;  // A factor of 55.
constexpr uint64_t kRateBytesMin = 256 * kKiB;

// One step of the average towards the logarithm of `sample`.
void Follow(double& average, double sample) {
  average = std::exp(std::log(average) + kWeight * (std::log(sample) - std::log(average)));
}

}  // namespace

LoadEstimator::Ticket LoadEstimator::Begin(uint64_t bytes, Instant now) {
  const Ticket ticket{.began = now,
                      .bytes = bytes,
                      .finished_before = finished_,
                      .kind = KindOf(bytes),
                      .estimate = Model(bytes)};
  in_flight_ += bytes;
  return ticket;
}

void LoadEstimator::End(const Ticket& ticket, uint64_t got, Instant now) {
  in_flight_ -= std::min(in_flight_, ticket.bytes);
  if (got == 0) return;
  finished_ += got;
  const double took = std::max(1.0, static_cast<double>((now - ticket.began).value));
  const uint64_t moved = finished_ - ticket.finished_before;  // Its own, and others' meanwhile.
  double& error = error_[ticket.kind];
  const double off = std::log(took / std::max(1.0, ticket.estimate));
  error = std::clamp(error + kWeight * (off - error), -kErrorMax, kErrorMax);
  if (moved < kRateBytesMin) {
    Follow(latency_nanos_, took);
    return;
  }
  const double transfer = std::max(took - latency_nanos_, took / 2);
  Follow(nanos_per_byte_, transfer / static_cast<double>(moved));
}

Nanos LoadEstimator::Estimate(uint64_t bytes) const {
  if (bytes == 0) return {};
  const double nanos = Model(bytes) * std::exp(error_[KindOf(bytes)]);
  return {std::max<int64_t>(1, static_cast<int64_t>(nanos))};
}

double LoadEstimator::Model(uint64_t bytes) const {
  return latency_nanos_ + static_cast<double>(in_flight_ + bytes) * nanos_per_byte_;
}

// Four sizes, idle or with more in flight than the load itself.
size_t LoadEstimator::KindOf(uint64_t bytes) const {
  const size_t size = bytes < 256 * kKiB ? 0 : bytes < 4 * kMiB ? 1 : bytes < 64 * kMiB ? 2 : 3;
  const size_t busy = in_flight_ > bytes ? 1 : 0;
  return size * 2 + busy;
}

}  // namespace cairn::kv
