// How much one session may have in flight: waited for in order, and not beyond a deadline.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "kvstore/async/event.h"
#include "kvstore/async/task.h"
#include "kvstore/io/clock.h"

namespace cairn::kv {

// Loop thread only.
class Credits {
 public:
  Credits(Loop& loop, Clock& clock, uint64_t requests, uint64_t bytes)
      : loop_(loop), clock_(clock), requests_(requests), bytes_(bytes) {}
  Credits(const Credits&) = delete;
  Credits& operator=(const Credits&) = delete;

  // One request of `bytes`, no more than there are in all. False: the deadline came first.
  Task<bool> Take(uint64_t bytes, Instant deadline) {
    if (waiters_.empty() && Fits(bytes)) {
      Subtract(bytes);
      co_return true;
    }
    Waiter waiter{.bytes = bytes, .granted = Event(loop_)};
    waiters_.push_back(&waiter);
    co_await clock_.SleepUntil(deadline, &waiter.granted);
    if (waiter.granted.is_set()) co_return true;
    std::erase(waiters_, &waiter);
    Grant();
    co_return false;
  }
  void Give(uint64_t bytes) {
    ++requests_;
    bytes_ += bytes;
    Grant();
  }

 private:
  struct Waiter {
    uint64_t bytes = 0;
    Event granted;
  };

  bool Fits(uint64_t bytes) const { return requests_ > 0 && bytes <= bytes_; }
  void Subtract(uint64_t bytes) {
    --requests_;
    bytes_ -= bytes;
  }
  void Grant() {
    while (!waiters_.empty() && Fits(waiters_.front()->bytes)) {
      Subtract(waiters_.front()->bytes);
      waiters_.front()->granted.Set();
      waiters_.pop_front();
    }
  }

  Loop& loop_;
  Clock& clock_;
  uint64_t requests_;
  uint64_t bytes_;
  std::deque<Waiter*> waiters_;
};

}  // namespace cairn::kv
