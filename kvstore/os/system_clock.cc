// CLOCK_MONOTONIC and CLOCK_REALTIME.
#include "kvstore/os/system_clock.h"

#include <time.h>

namespace cairn::kv {

UnixMillis SystemClock::UnixNow() const {
  if (unix_now_) return unix_now_();
  timespec now;
  KV_CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
  return {int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000};
}

Task<void> SystemClock::SleepUntil(Instant wake_at, Event* cancel) {
  if (wake_at <= Now()) co_return;
  co_await Sleep(poller_.loop(), poller_.timers(), wake_at, cancel);
}

}  // namespace cairn::kv
