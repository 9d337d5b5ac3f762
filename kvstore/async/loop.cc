// Runs what is ready, in the order in which it became so; posted calls do not queue behind it.
#include "kvstore/async/loop.h"

#include <utility>

namespace cairn::kv {

void Loop::Post(std::function<void()> call) {
  // Under the lock: once the call has run, who owns the poller may be gone.
  const std::lock_guard lock(mutex_);
  posted_.push_back(std::move(call));
  if (notify_) notify_();
}

void Loop::SetNotify(std::function<void()> notify) {
  const std::lock_guard lock(mutex_);
  notify_ = std::move(notify);
}

void Loop::RunReady() {
  while (TakePosted() || !ready_.empty()) {
    if (ready_.empty()) continue;
    const std::coroutine_handle<> next = ready_.front();
    ready_.pop_front();
    next.resume();
  }
}

bool Loop::HasWork() {
  if (!ready_.empty()) return true;
  const std::lock_guard lock(mutex_);
  return !posted_.empty();
}

bool Loop::TakePosted() {
  std::vector<std::function<void()>> calls;
  {
    const std::lock_guard lock(mutex_);
    calls.swap(posted_);
  }
  for (std::function<void()>& call : calls) call();
  return !calls.empty();
}

}  // namespace cairn::kv
