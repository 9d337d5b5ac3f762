// Keeps each held task in a frame that frees itself at the end.
#include "kvstore/async/gate.h"

namespace cairn::kv {
namespace {

struct Detached {
  struct promise_type {
    Detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
  };
};

template <typename Leave>
Detached Finish(Task<void> task, Leave leave) {
  co_await task;
  leave();
}

}  // namespace

void Gate::Hold(Task<void> task) {
  KV_CHECK(!closed_);
  ++count_;
  Finish(std::move(task), [this] { Leave(); });
}

Task<void> Gate::Close() {
  KV_CHECK(!closed_);
  closed_ = true;
  if (count_ > 0) co_await emptied_;
}

void Gate::Leave() {
  --count_;
  if (closed_ && count_ == 0) emptied_.Set();
}

}  // namespace cairn::kv
