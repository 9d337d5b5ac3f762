// Steps through the event heap.
#include "tests/sim/sim_clock.h"

#include <algorithm>

namespace cairn::sim {

kv::Task<void> SimClock::SleepUntil(kv::Instant wake_at, kv::Event* cancel) {
  if (wake_at <= now_) co_return;
  co_await kv::Sleep(loop_, timers_, wake_at, cancel);
}

bool SimClock::Step() {
  if (timers_.empty()) return false;
  now_ = std::max(now_, timers_.next_at());
  timers_.RunNext();
  return true;
}

bool SimClock::RunUntil(const std::function<bool()>& done) {
  loop_.RunReady();
  while (!done()) {
    if (!Step()) return false;
    loop_.RunReady();
  }
  return true;
}

void SimClock::RunUntilIdle() {
  RunUntil([] { return false; });
}

void SimClock::RunUntil(kv::Instant at) {
  RunUntil([this, at] { return timers_.next_at() > at; });
  now_ = std::max(now_, at);
}

void SimClock::At(kv::Instant at, std::function<void()> call) {
  timers_.Add(std::max(at, now_), std::move(call));
}

}  // namespace cairn::sim
