// Turns the engine's calls into one answer or a stream of events.
#include "gateway/api/chat_session.h"

#include <utility>

#include "gateway/api/api_error.h"
#include "gateway/http/sse.h"
#include "kvstore/base/check.h"

namespace cairn::gateway {

void SessionCount::Enter() {
  const std::lock_guard lock(mutex_);
  ++count_;
}

void SessionCount::Leave() {
  const std::lock_guard lock(mutex_);
  KV_CHECK(count_ > 0);
  --count_;
  // Under the lock: whoever waits may destroy this object as soon as it can take the lock.
  changed_.notify_all();
}

void SessionCount::AwaitNone() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return count_ == 0; });
}

uint32_t SessionCount::now() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

ChatSession::ChatSession(ChatSessionOptions options, std::shared_ptr<Exchange> exchange,
                         std::unique_ptr<ChatSessionObserver> observer)
    : options_(std::move(options)),
      exchange_(std::move(exchange)),
      observer_(std::move(observer)) {}

void ChatSession::Admitted(std::function<void()> cancel) {
  if (options_.stream) StartStream();
  exchange_->WhenGone([weak = weak_from_this(), cancel = std::move(cancel)] {
    // Without the session the request has ended, and there is nothing to cancel.
    const auto self = weak.lock();
    if (!self) return;
    self->client_left_ = true;
    cancel();
  });
}

void ChatSession::OnStart(const engine::Usage& usage) {
  observer_->OnFirstToken(usage);
  if (!options_.stream) return;
  StartStream();  // The engine may be faster than Submit's return.
  Send(RoleChunk(options_.identity, options_.usage_field));
}

void ChatSession::OnText(std::string_view text) {
  if (text.empty()) return;
  if (options_.stream) {
    Send(TextChunk(options_.identity, options_.usage_field, text));
  } else {
    text_.append(text);
  }
}

void ChatSession::OnEnd(engine::FinishReason reason, const engine::Usage& usage,
                        const kv::Status& status) {
  switch (reason) {
    case engine::FinishReason::kStop:
    case engine::FinishReason::kLength:
      if (options_.stream) {
        EndStream(reason, usage);
      } else {
        exchange_->Respond({.content_type = "application/json",
                            .headers = options_.headers,
                            .body = CompletionBody(options_.identity, text_, reason, usage)});
      }
      observer_->OnAnswered(client_left_ ? kClientLeft : 200, usage);
      return;
    case engine::FinishReason::kCancelled:
      // Not by the client: the engine itself gives up, since it is stopping.
      Fail(kv::Status(kv::Code::kUnavailable, "the generation was cancelled"), usage);
      return;
    case engine::FinishReason::kError:
      Fail(status, usage);
      return;
  }
}

// Safe to call twice: the exchange drops the second.
void ChatSession::StartStream() {
  Response head{.content_type = std::string(kSseContentType), .headers = options_.headers};
  head.headers.emplace_back("Cache-Control", "no-cache");
  head.headers.emplace_back("X-Accel-Buffering", "no");  // Proxies must not hold events back.
  exchange_->StartStream(std::move(head), kSseKeepAlive);
}

void ChatSession::EndStream(engine::FinishReason reason, const engine::Usage& usage) {
  Send(FinishChunk(options_.identity, options_.usage_field, reason));
  if (options_.usage_field == UsageField::kNull) Send(UsageChunk(options_.identity, usage));
  Send("[DONE]");
  exchange_->Finish();
}

// A stream has sent its 200 already, so the error is its last event; there is no [DONE], for it
// would tell that the text is whole.
void ChatSession::Fail(const kv::Status& status, const engine::Usage& usage) {
  ApiError error = FromStatus(status);
  if (options_.stream) {
    StartStream();
    Send(ErrorBody(error));
    exchange_->Finish();
  } else {
    error.headers.insert(error.headers.end(), options_.headers.begin(), options_.headers.end());
    exchange_->Respond(ErrorResponse(error));
  }
  observer_->OnAnswered(client_left_ ? kClientLeft : error.status, usage);
}

// When nobody reads, the cancellation is already under way.
void ChatSession::Send(std::string_view json) { (void)exchange_->Write(SseEvent(json)); }

}  // namespace cairn::gateway
