// Virtual time: it stands still while code runs, and jumps to the next event in Step.
#pragma once

#include <functional>
#include <utility>

#include "kvstore/async/loop.h"
#include "kvstore/async/timer_queue.h"
#include "kvstore/io/clock.h"
#include "tests/sim/trace.h"

namespace cairn::sim {

// Holds the event heap and the trace of one simulation. `loop` must outlive it.
class SimClock final : public kv::Clock {
 public:
  explicit SimClock(kv::Loop& loop) : loop_(loop) {}

  kv::Instant Now() const override { return now_; }
  kv::UnixMillis UnixNow() const override {
    return {unix_at_zero_ + now_.nanos / 1'000'000};
  }
  kv::Task<void> SleepUntil(kv::Instant wake_at, kv::Event* cancel) override;

  // Jumps to the next event and runs it. False when there is none. Call loop.RunReady() after it.
  bool Step();
  // Steps and runs until `done()` holds (true) or nothing is left to happen (false).
  bool RunUntil(const std::function<bool()>& done);
  // Until nothing is left to happen.
  void RunUntilIdle();
  // Everything due until then happens, and then it is `at`.
  void RunUntil(kv::Instant at);
  // Runs the world until `task` is done, and gives its result. A task that waits for ever fails a
  // check: the simulation has found a hang.
  template <typename T>
  T Await(kv::Task<T> task) {
    KV_CHECK(RunUntil([&task] { return task.done(); }));
    return task.Take();
  }

  // Somebody sets the calendar; the steady clock does not notice.
  void SetUnix(kv::UnixMillis unix_now) { unix_at_zero_ = unix_now.value - now_.nanos / 1'000'000; }

  // For the other simulated parts: runs `call` in the Step that reaches `at`, now if it is past.
  void At(kv::Instant at, std::function<void()> call);

  void Note(TraceKind kind, uint64_t id, uint64_t first, uint64_t second) {
    trace_.Add(now_, kind, id, first, second);
  }
  const Trace& trace() const { return trace_; }

 private:
  kv::Loop& loop_;
  kv::TimerQueue timers_;
  kv::Instant now_{1};
  int64_t unix_at_zero_ = 1'700'000'000'000;
  Trace trace_;
};

}  // namespace cairn::sim
