// The seam to time.
#pragma once

#include "kvstore/async/event.h"
#include "kvstore/async/task.h"
#include "kvstore/base/time.h"

namespace cairn::kv {

class Clock {
 public:
  virtual ~Clock() = default;

  // Never goes back. Its zero means nothing.
  virtual Instant Now() const = 0;
  // Calendar time. May step either way when somebody sets the clock.
  virtual UnixMillis UnixNow() const = 0;

  // Returns at `wake_at`, or as soon as `cancel` is set. `cancel` may be null; it must outlive the
  // call. Loop thread only.
  virtual Task<void> SleepUntil(Instant wake_at, Event* cancel) = 0;
};

}  // namespace cairn::kv
