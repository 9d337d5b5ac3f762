// A value that one thread gives and another waits for: how a thread asks a loop something.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

namespace cairn::kv {

// Give once, Wait once; any threads. Never Wait on the loop that is to give.
template <typename T>
class Handover {
 public:
  void Give(T value) {
    // Notified under the lock: who waits may destroy this as soon as it has the value.
    const std::lock_guard lock(mutex_);
    value_.emplace(std::move(value));
    arrived_.notify_one();
  }
  T Wait() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return value_.has_value(); });
    return std::move(*value_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::optional<T> value_;
};

}  // namespace cairn::kv
