// One-shot events: what the leaves of a coroutine tree wait for.
#pragma once

#include <coroutine>
#include <optional>
#include <utility>
#include <vector>

#include "kvstore/async/loop.h"
#include "kvstore/base/check.h"

namespace cairn::kv {

// Set once; everybody who waits, before or after, goes on. Loop thread only.
class Event {
 public:
  explicit Event(Loop& loop) : loop_(loop) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { KV_CHECK(waiters_.empty()); }

  bool is_set() const { return set_; }
  // Setting it again does nothing.
  void Set() {
    set_ = true;
    for (const std::coroutine_handle<> waiter : std::exchange(waiters_, {})) loop_.Wake(waiter);
  }

  // Takes `waiter` off the list, for one that waits for more than one thing. False when it is not
  // there: then Set has woken it already.
  bool Forget(std::coroutine_handle<> waiter) { return std::erase(waiters_, waiter) > 0; }

  bool await_ready() const { return set_; }
  void await_suspend(std::coroutine_handle<> waiter) { waiters_.push_back(waiter); }
  void await_resume() const {}

 private:
  Loop& loop_;
  bool set_ = false;
  std::vector<std::coroutine_handle<>> waiters_;
};

// Set once with a value; one waiter takes it. Loop thread only.
// The setter may hold a pointer: the object must live until it is set and awaited.
template <typename T>
class OneShot {
 public:
  explicit OneShot(Loop& loop) : loop_(loop) {}
  OneShot(const OneShot&) = delete;
  OneShot& operator=(const OneShot&) = delete;

  void Set(T value) {
    KV_CHECK(!value_.has_value());
    value_.emplace(std::move(value));
    if (waiter_) loop_.Wake(std::exchange(waiter_, nullptr));
  }

  bool await_ready() const { return value_.has_value(); }
  void await_suspend(std::coroutine_handle<> waiter) {
    KV_CHECK(waiter_ == nullptr);
    waiter_ = waiter;
  }
  T await_resume() { return std::move(*value_); }

 private:
  Loop& loop_;
  std::optional<T> value_;
  std::coroutine_handle<> waiter_;
};

}  // namespace cairn::kv
