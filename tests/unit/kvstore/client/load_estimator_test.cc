// The estimate against devices that are made up: idle, saturated, changing, and with noise.
#include "kvstore/client/load_estimator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kvstore/base/random.h"
#include "kvstore/base/units.h"

namespace cairn::kv {
namespace {

// First come, first served: a fixed time for each load, and a rate that all share.
class Device {
 public:
  Device(double bytes_per_nano, Nanos latency, double noise)
      : bytes_per_nano_(bytes_per_nano), latency_(latency), noise_(noise) {}

  // When a load that is asked for now is there.
  Instant Serve(uint64_t bytes, Instant now, Random& random) {
    const double factor = std::exp(noise_ * (random.Unit() * 2 - 1));
    const double transfer = static_cast<double>(bytes) / bytes_per_nano_ * factor;
    free_at_ = std::max(free_at_, now) + Nanos{static_cast<int64_t>(transfer)};
    return free_at_ + latency_;
  }
  void SetRate(double bytes_per_nano) { bytes_per_nano_ = bytes_per_nano; }

 private:
  double bytes_per_nano_;
  const Nanos latency_;
  const double noise_;
  Instant free_at_;
};

// `clients` that each load again as soon as they have what they asked for.
class Clients {
 public:
  Clients(size_t clients, std::vector<uint64_t> sizes) : sizes_(std::move(sizes)) {
    loads_.resize(clients);
  }

  // The share of loads whose estimate was within a factor of two.
  double Run(LoadEstimator& estimator, Device& device, int count) {
    int right = 0;
    for (int i = 0; i < count; ++i) {
      const auto next = std::min_element(
          loads_.begin(), loads_.end(), [](const Load& a, const Load& b) { return a.at < b.at; });
      now_ = std::max(now_, next->at);
      if (next->begun) {
        estimator.End(next->ticket, next->ticket.size.cold, now_);
        const auto took = static_cast<double>((now_ - next->ticket.began).value);
        const double ratio = took / static_cast<double>(next->estimate.value);
        right += ratio > 0.5 && ratio < 2.0 ? 1 : 0;
      }
      const uint64_t bytes = sizes_[random_.Below(sizes_.size())];
      const LoadSize size{.cold = bytes};
      next->estimate = estimator.Estimate(size);
      next->ticket = estimator.Begin(now_);
      estimator.Add(next->ticket, bytes, false);
      next->at = device.Serve(bytes, now_, random_);
      next->begun = true;
    }
    return static_cast<double>(right) / count;
  }

 private:
  struct Load {
    Instant at;
    Nanos estimate;
    LoadEstimator::Ticket ticket;
    bool begun = false;
  };
  const std::vector<uint64_t> sizes_;
  std::vector<Load> loads_;
  Instant now_;
  Random random_{7};
};

const std::vector<uint64_t> kMixed{16 * kKiB, 256 * kKiB, 1 * kMiB, 16 * kMiB};

TEST(LoadEstimator, IsRightForOneClientOnAnIdleDevice) {
  LoadEstimator estimator;
  Device device(2.0, Micros(100), 0.2);
  Clients clients(1, kMixed);
  (void)clients.Run(estimator, device, 200);
  EXPECT_GT(clients.Run(estimator, device, 1000), 0.9);
}

TEST(LoadEstimator, IsRightWhileManyClientsSaturateTheDevice) {
  for (const size_t count : {4u, 32u, 200u}) {
    LoadEstimator estimator;
    Device device(5.0, Micros(80), 0.5);
    Clients clients(count, kMixed);
    (void)clients.Run(estimator, device, static_cast<int>(count) * 20);
    EXPECT_GT(clients.Run(estimator, device, 4000), 0.9) << count;
  }
}

TEST(LoadEstimator, FollowsADeviceThatSlowsDown) {
  LoadEstimator estimator;
  Device device(5.0, Micros(80), 0.2);
  Clients clients(16, kMixed);
  (void)clients.Run(estimator, device, 500);
  device.SetRate(0.5);
  (void)clients.Run(estimator, device, 100);
  EXPECT_GT(clients.Run(estimator, device, 1000), 0.9);
}

TEST(LoadEstimator, IsNotFixedToItsFirstGuess) {
  for (const double rate : {0.02, 50.0}) {
    LoadEstimator estimator;
    Device device(rate, Micros(20), 0.2);
    Clients clients(8, kMixed);
    (void)clients.Run(estimator, device, 300);
    EXPECT_GT(clients.Run(estimator, device, 1000), 0.9) << rate;
  }
}

TEST(LoadEstimator, LearnsNothingFromFailuresAndForgetsThem) {
  LoadEstimator estimator;
  const LoadSize size{.cold = 1 * kMiB};
  const Nanos before = estimator.Estimate(size);
  LoadEstimator::Ticket ticket = estimator.Begin({0});
  estimator.Add(ticket, 1 * kMiB, false);
  EXPECT_GT(estimator.Estimate(size), before) << "what is in flight comes first";
  estimator.End(ticket, 0, {1'000'000'000});
  EXPECT_EQ(estimator.Estimate(size), before);
  EXPECT_EQ(estimator.bytes_in_flight(), 0u);
  EXPECT_EQ(estimator.Estimate({}).value, 0);
}

TEST(LoadEstimator, TellsWhatIsInMemoryFromWhatIsNot) {
  LoadEstimator estimator;
  Instant now;
  for (int i = 0; i < 200; ++i) {
    const bool in_memory = i % 2 == 0;
    LoadEstimator::Ticket ticket = estimator.Begin(now);
    estimator.Add(ticket, 4 * kMiB, in_memory);
    now = now + (in_memory ? Micros(500) : Micros(8000));
    estimator.End(ticket, 4 * kMiB, now);
  }
  EXPECT_NEAR(static_cast<double>(estimator.Estimate({.cold = 4 * kMiB}).value), 8e6, 1e6);
  EXPECT_NEAR(static_cast<double>(estimator.Estimate({.hot = 4 * kMiB}).value), 5e5, 1e5);
}

// Loads of which each gets its share of the rate at once: a small one does not wait for all others.
TEST(LoadEstimator, IsRightWhereLoadsShareTheDevice) {
  LoadEstimator estimator;
  Random random(3);
  struct Load {
    LoadEstimator::Ticket ticket;
    Nanos estimate;
    double left = 0;
  };
  std::vector<Load> loads(16);
  const auto begin = [&](Load& load, Instant now) {
    const uint64_t bytes = (1 + random.Below(64)) * 256 * kKiB;
    load.estimate = estimator.Estimate({.cold = bytes});
    load.ticket = estimator.Begin(now);
    estimator.Add(load.ticket, bytes, false);
    load.left = static_cast<double>(bytes);
  };
  Instant now;
  for (Load& load : loads) begin(load, now);
  int right = 0;
  for (int i = 0; i < 1500; ++i) {
    Load& next = *std::min_element(loads.begin(), loads.end(), [](const Load& a, const Load& b) {
      return a.left < b.left;
    });
    const double step = next.left;
    now = now + Nanos{static_cast<int64_t>(step * static_cast<double>(loads.size()))};
    for (Load& load : loads) load.left -= step;
    estimator.End(next.ticket, next.ticket.size.cold, now);
    const double ratio = static_cast<double>((now - next.ticket.began).value) /
                         static_cast<double>(next.estimate.value);
    if (i >= 500) right += ratio > 0.5 && ratio < 2.0 ? 1 : 0;
    begin(next, now);
  }
  EXPECT_GT(right, 900);
}

}  // namespace
}  // namespace cairn::kv
