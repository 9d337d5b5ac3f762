// The machine's clocks as a kv::Clock, for tests that need the time but no sleeping.
#pragma once

#include <chrono>

#include "kvstore/io/clock.h"

namespace cairn::testing {

class SteadyTestClock final : public kv::Clock {
 public:
  kv::Instant Now() const override {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return {std::chrono::duration_cast<std::chrono::nanoseconds>(since).count()};
  }
  kv::UnixMillis UnixNow() const override {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return {std::chrono::duration_cast<std::chrono::milliseconds>(since).count()};
  }
  kv::Task<void> SleepUntil(kv::Instant, kv::Event*) override { co_return; }
};

}  // namespace cairn::testing
