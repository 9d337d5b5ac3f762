// The clocks of the machine, and timers on the poller.
#pragma once

#include "kvstore/io/clock.h"
#include "kvstore/os/poller.h"

namespace cairn::kv {

class SystemClock final : public Clock {
 public:
  // `poller` must outlive this.
  explicit SystemClock(Poller& poller) : poller_(poller) {}

  Instant Now() const override { return Poller::Now(); }
  UnixMillis UnixNow() const override;
  Task<void> SleepUntil(Instant wake_at, Event* cancel) override;

 private:
  Poller& poller_;
};

}  // namespace cairn::kv
