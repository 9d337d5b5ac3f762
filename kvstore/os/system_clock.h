// The clocks of the machine, and timers on the poller.
#pragma once

#include <functional>
#include <utility>

#include "kvstore/io/clock.h"
#include "kvstore/os/poller.h"

namespace cairn::kv {

class SystemClock final : public Clock {
 public:
  // `poller` must outlive this.
  // `unix_now` gives the calendar time instead of the machine, where it is not empty.
  explicit SystemClock(Poller& poller, std::function<UnixMillis()> unix_now = {})
      : poller_(poller), unix_now_(std::move(unix_now)) {}

  Instant Now() const override { return Poller::Now(); }
  UnixMillis UnixNow() const override;
  Task<void> SleepUntil(Instant wake_at, Event* cancel) override;

 private:
  Poller& poller_;
  const std::function<UnixMillis()> unix_now_;
};

}  // namespace cairn::kv
