// A counted limit whose units are handles: a permit cannot leak.
#pragma once

#include <coroutine>
#include <cstdint>
#include <deque>
#include <utility>

#include "kvstore/async/loop.h"
#include "kvstore/base/check.h"

namespace cairn::kv {

// First come, first served: a large request at the head is not overtaken. Loop thread only.
class Semaphore {
 public:
  Semaphore(Loop& loop, uint64_t units) : loop_(loop), total_(units), free_(units) {}
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;
  ~Semaphore() { KV_CHECK(free_ == total_); }

  // Gives its units back when it goes out of scope. The semaphore must outlive it.
  class Permit {
   public:
    Permit() = default;
    Permit(Semaphore* owner, uint64_t units) : owner_(owner), units_(units) {}
    Permit(Permit&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), units_(other.units_) {}
    Permit& operator=(Permit&& other) noexcept {
      Release();
      owner_ = std::exchange(other.owner_, nullptr);
      units_ = other.units_;
      return *this;
    }
    ~Permit() { Release(); }
    void Release() {
      if (owner_ != nullptr) std::exchange(owner_, nullptr)->Return(units_);
    }

   private:
    Semaphore* owner_ = nullptr;
    uint64_t units_ = 0;
  };

  class Acquisition {
   public:
    Acquisition(Semaphore& owner, uint64_t units) : owner_(owner), units_(units) {}
    bool await_ready() {
      if (!owner_.waiters_.empty() || owner_.free_ < units_) return false;
      owner_.free_ -= units_;
      return true;
    }
    void await_suspend(std::coroutine_handle<> waiter) {
      owner_.waiters_.push_back({waiter, units_});
    }
    Permit await_resume() { return {&owner_, units_}; }

   private:
    Semaphore& owner_;
    uint64_t units_;
  };

  // co_await it for a Permit. `units` is at most the total.
  Acquisition Acquire(uint64_t units) {
    KV_CHECK(units <= total_);
    return {*this, units};
  }

  uint64_t free() const { return free_; }
  size_t waiting() const { return waiters_.size(); }

 private:
  struct Waiter {
    std::coroutine_handle<> handle;
    uint64_t units;
  };

  void Return(uint64_t units) {
    free_ += units;
    while (!waiters_.empty() && waiters_.front().units <= free_) {
      free_ -= waiters_.front().units;
      loop_.Wake(waiters_.front().handle);
      waiters_.pop_front();
    }
  }

  Loop& loop_;
  const uint64_t total_;
  uint64_t free_;
  std::deque<Waiter> waiters_;
};

}  // namespace cairn::kv
