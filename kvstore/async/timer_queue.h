// Calls that wait for their time, and the sleep that both the real and the simulated clock use.
#pragma once

#include <coroutine>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "kvstore/async/event.h"
#include "kvstore/async/loop.h"
#include "kvstore/base/check.h"
#include "kvstore/base/time.h"

namespace cairn::kv {

// Ordered by time; calls of one instant run in the order they were added. Loop thread only.
class TimerQueue {
 public:
  struct Key {
    Instant at;
    uint64_t sequence = 0;
    auto operator<=>(const Key&) const = default;
  };

  Key Add(Instant at, std::function<void()> call) {
    const Key key{at, ++sequence_};
    calls_.emplace(key, std::move(call));
    return key;
  }
  // Removing a call that has run does nothing.
  void Remove(Key key) { calls_.erase(key); }

  bool empty() const { return calls_.empty(); }
  size_t size() const { return calls_.size(); }
  // When the first call is due; kNever when there is none.
  Instant next_at() const { return calls_.empty() ? kNever : calls_.begin()->first.at; }

  // Takes the first call out and runs it. There is one.
  void RunNext() {
    KV_CHECK(!calls_.empty());
    auto node = calls_.extract(calls_.begin());
    node.mapped()();
  }
  // Runs all that are due at `now`.
  void RunDue(Instant now) {
    while (next_at() <= now && !empty()) RunNext();
  }

 private:
  uint64_t sequence_ = 0;
  std::map<Key, std::function<void()>> calls_;
};

// co_await it: goes on at `wake_at`, or as soon as `cancel` (may be null) is set. With kNever only
// `cancel` ends it.
class Sleep {
 public:
  Sleep(Loop& loop, TimerQueue& timers, Instant wake_at, Event* cancel)
      : loop_(loop), timers_(timers), wake_at_(wake_at), cancel_(cancel) {}

  bool await_ready() const { return cancel_ != nullptr && cancel_->is_set(); }
  void await_suspend(std::coroutine_handle<> waiter) {
    waiter_ = waiter;
    if (cancel_ != nullptr) cancel_->await_suspend(waiter);
    if (wake_at_ != kNever) key_ = timers_.Add(wake_at_, [this] { Fire(); });
  }
  void await_resume() {
    if (key_.sequence != 0) timers_.Remove(key_);
  }

 private:
  void Fire() {
    // Once `cancel` has woken the waiter, a second wake-up would resume a finished coroutine.
    if (cancel_ == nullptr || cancel_->Forget(waiter_)) loop_.Wake(waiter_);
  }

  Loop& loop_;
  TimerQueue& timers_;
  const Instant wake_at_;
  Event* const cancel_;
  std::coroutine_handle<> waiter_;
  TimerQueue::Key key_;
};

}  // namespace cairn::kv
