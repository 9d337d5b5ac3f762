// The bounded queue between a handler and its connection.
#include "gateway/http/exchange_queue.h"

#include <utility>

namespace cairn::gateway {

ExchangeQueue::ExchangeQueue(uint64_t pending_bytes_max, std::function<void()> wake)
    : pending_bytes_max_(pending_bytes_max), wake_(std::move(wake)) {}

void ExchangeQueue::Respond(Response response) {
  const std::lock_guard lock(mutex_);
  if (gone_ || finished_ || stream_started_) return;
  response_ = std::move(response);
  finished_ = true;
  when_gone_ = nullptr;
  WakeLocked();
}

void ExchangeQueue::StartStream(Response head, std::string_view keep_alive) {
  const std::lock_guard lock(mutex_);
  if (gone_ || finished_ || stream_started_) return;
  stream_started_ = true;
  stream_head_ = std::move(head);
  keep_alive_ = keep_alive;
  WakeLocked();
}

bool ExchangeQueue::Write(std::string_view bytes) {
  bool full = false;
  {
    const std::lock_guard lock(mutex_);
    if (gone_ || finished_ || !stream_started_) return false;
    full = pending_.size() + bytes.size() > pending_bytes_max_;
    if (!full) {
      pending_.append(bytes);
      WakeLocked();
    }
  }
  if (full) MarkGone();
  return !full;
}

void ExchangeQueue::Finish() {
  const std::lock_guard lock(mutex_);
  if (gone_ || finished_ || !stream_started_) return;
  finished_ = true;
  when_gone_ = nullptr;
  WakeLocked();
}

void ExchangeQueue::WhenGone(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    if (!gone_) {
      when_gone_ = std::move(callback);
      return;
    }
  }
  callback();
}

ExchangeQueue::Output ExchangeQueue::Take() {
  const std::lock_guard lock(mutex_);
  wake_pending_ = false;
  Output output;
  output.response = std::exchange(response_, std::nullopt);
  output.stream_head = std::exchange(stream_head_, std::nullopt);
  output.bytes = std::exchange(pending_, {});
  output.finished = finished_;
  output.gone = gone_;
  return output;
}

std::string ExchangeQueue::keep_alive() {
  const std::lock_guard lock(mutex_);
  return keep_alive_;
}

void ExchangeQueue::MarkGone() {
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    if (gone_) return;
    gone_ = true;
    pending_ = {};
    callback = std::exchange(when_gone_, nullptr);
    WakeLocked();
  }
  if (callback) callback();
}

void ExchangeQueue::Detach() {
  {
    const std::lock_guard lock(mutex_);
    wake_ = nullptr;
  }
  MarkGone();
}

void ExchangeQueue::WakeLocked() {
  if (wake_pending_ || !wake_) return;
  wake_pending_ = true;
  wake_();
}

}  // namespace cairn::gateway
