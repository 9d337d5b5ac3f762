// Task<T>: a coroutine that starts when it is called and is awaited once.
//
// A Task that is destroyed before it is done fails a check: hand stragglers to a Gate (gate.h).
// The result is moved to the awaiting coroutine. Tasks are not thread-safe; a Task and all that it
// awaits live on one loop.
//
// g++ 12.2 traps (docs/style.md): no braces inside a co_await expression, no capturing lambda as a
// coroutine, no `co_await calls[i]` on a Task (take a reference first).
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "kvstore/base/check.h"

namespace cairn::kv {

namespace internal {

// When the coroutine ends, its awaiter goes on. The awaiter was suspended at some earlier point, so
// this is not a completion inside the call that started it, and depth is bounded by nesting.
struct FinalAwaiter {
  bool await_ready() const noexcept { return false; }
  template <typename Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
    const std::coroutine_handle<> awaiter = ended.promise().awaiter;
    return awaiter ? awaiter : std::noop_coroutine();
  }
  void await_resume() const noexcept {}
};

struct PromiseBase {
  std::coroutine_handle<> awaiter;

  std::suspend_never initial_suspend() const noexcept { return {}; }
  FinalAwaiter final_suspend() const noexcept { return {}; }
  [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
};

template <typename T>
struct Promise : PromiseBase {
  std::optional<T> result;

  std::coroutine_handle<Promise> get_return_object() {
    return std::coroutine_handle<Promise>::from_promise(*this);
  }
  template <typename U>
  void return_value(U&& value) {
    result.emplace(std::forward<U>(value));
  }
  T Take() { return std::move(*result); }
};

template <>
struct Promise<void> : PromiseBase {
  std::coroutine_handle<Promise> get_return_object() {
    return std::coroutine_handle<Promise>::from_promise(*this);
  }
  void return_void() const noexcept {}
  void Take() const noexcept {}
};

}  // namespace internal

template <typename T = void>
class [[nodiscard]] Task {
 public:
  using promise_type = internal::Promise<T>;

  Task() = default;
  Task(std::coroutine_handle<promise_type> coroutine)  // NOLINT(google-explicit-constructor)
      : coroutine_(coroutine) {}
  Task(Task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    Destroy();
    coroutine_ = std::exchange(other.coroutine_, nullptr);
    return *this;
  }
  ~Task() { Destroy(); }

  // True once awaiting it would not suspend.
  bool done() const { return coroutine_ && coroutine_.done(); }

  // The result of a finished task, taken without awaiting. A check fails unless done().
  T Take() {
    KV_CHECK(done());
    return coroutine_.promise().Take();
  }

  bool await_ready() const {
    KV_CHECK(coroutine_ != nullptr);
    return coroutine_.done();
  }
  void await_suspend(std::coroutine_handle<> awaiter) { coroutine_.promise().awaiter = awaiter; }
  T await_resume() { return coroutine_.promise().Take(); }

 private:
  void Destroy() {
    if (!coroutine_) return;
    KV_CHECK(coroutine_.done());
    coroutine_.destroy();
  }

  std::coroutine_handle<promise_type> coroutine_;
};

}  // namespace cairn::kv
