// One chat completion under way: listens to the engine, and answers the client.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "engine/api/engine.h"
#include "gateway/api/chat_response.h"
#include "gateway/http/exchange.h"
#include "kvstore/base/time.h"

namespace cairn::gateway {

// Counts the sessions whose listener the engine may still call, so that Stop can wait for them.
class SessionCount {
 public:
  void Enter();
  void Leave();
  // Returns when none is left. No new one may enter meanwhile.
  void AwaitNone();
  uint32_t now() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t count_ = 0;
};

struct ChatSessionOptions {
  ChatIdentity identity;
  bool stream = false;
  UsageField usage_field = UsageField::kAbsent;  // kNull: usage was asked for within a stream.
  Headers headers;                               // Of the response.
};

// What a session tells its maker. Called on the engine's thread.
class ChatSessionObserver {
 public:
  virtual ~ChatSessionObserver() = default;
  virtual void OnFirstToken(const engine::Usage& usage) = 0;
  // Once, after the answer. `status` is that of HTTP; 499 when the client left before the end.
  virtual void OnAnswered(int status, const engine::Usage& usage) = 0;
};

class ChatSession final : public engine::GenerateListener,
                          public std::enable_shared_from_this<ChatSession> {
 public:
  static constexpr int kClientLeft = 499;

  ChatSession(ChatSessionOptions options, std::shared_ptr<Exchange> exchange,
              std::unique_ptr<ChatSessionObserver> observer);

  // The engine has taken the request: only now may 200 go out. `cancel` ends it; it is called when
  // the client leaves.
  void Admitted(std::function<void()> cancel);

  // GenerateListener.
  void OnStart(const engine::Usage& usage) override;
  void OnText(std::string_view text) override;
  void OnEnd(engine::FinishReason reason, const engine::Usage& usage,
             const kv::Status& status) override;

 private:
  void StartStream();
  void EndStream(engine::FinishReason reason, const engine::Usage& usage);
  void Fail(const kv::Status& status, const engine::Usage& usage);
  void Send(std::string_view json);

  const ChatSessionOptions options_;
  const std::shared_ptr<Exchange> exchange_;
  const std::unique_ptr<ChatSessionObserver> observer_;
  std::atomic<bool> client_left_ = false;
  std::string text_;  // Of a whole answer. Engine thread only.
};

}  // namespace cairn::gateway
