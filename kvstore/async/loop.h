// The ready queue of one thread: every waiting coroutine is resumed from here and nowhere else.
//
// The same Loop runs in production and in simulation. Only who finds the next event differs:
//   while (!stopping) { loop.RunReady(); poller.Wait(); }         // the kernel says what happened
//   while (!done && clock.Step()) { loop.RunReady(); }            // the event heap says
#pragma once

#include <coroutine>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

namespace cairn::kv {

class Loop {
 public:
  Loop() = default;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Queues `waiter`; it runs in a later turn of RunReady, never inside this call.
  // Only from the loop's own thread.
  void Wake(std::coroutine_handle<> waiter) { ready_.push_back(waiter); }

  // co_await loop.Yield(): what is ready by now runs first.
  auto Yield() {
    struct Awaiter {
      Loop& loop;
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<> waiter) { loop.Wake(waiter); }
      void await_resume() const noexcept {}
    };
    return Awaiter{*this};
  }

  // Queues a call from any thread. `notify` (see SetNotify) tells a sleeping poller of it.
  void Post(std::function<void()> call);

  // Runs posted calls and ready coroutines, and what these make ready, until nothing is. A posted
  // call waits for no more than the coroutine that runs: a short question does not wait for a burst
  // of completions.
  // Only from the loop's own thread.
  void RunReady();

  // True when RunReady would find something to do. From any thread for posted calls.
  bool HasWork();

  // Called in each Post, on the poster's thread; must not call the loop. After a second SetNotify
  // has returned the first function is not called any more.
  void SetNotify(std::function<void()> notify);

 private:
  bool TakePosted();

  std::deque<std::coroutine_handle<>> ready_;
  std::mutex mutex_;
  std::function<void()> notify_;               // Protected by mutex_.
  std::vector<std::function<void()>> posted_;  // Protected by mutex_.
};

}  // namespace cairn::kv
