// The routes: who may call them, and what each answers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/engine.h"
#include "gateway/api/api_error.h"
#include "gateway/api/chat_request.h"
#include "gateway/api/chat_session.h"
#include "gateway/api/metrics.h"
#include "gateway/api/metrics_source.h"
#include "gateway/http/server.h"
#include "kvstore/base/digest.h"
#include "kvstore/base/log.h"
#include "kvstore/base/random.h"
#include "kvstore/io/clock.h"

namespace cairn::gateway {

struct ApiOptions {
  std::string bearer_token;  // Empty: everybody may call.
  std::vector<MetricsSource*> metrics_sources;
  std::function<uint32_t()> connections;  // How many are open, for the metrics. Thread-safe.
};

class ApiHandler final : public Handler {
 public:
  // All references outlive the handler; so do the metrics sources.
  ApiHandler(ApiOptions options, engine::Engine& engine, kv::Clock& clock, kv::Log& log);

  void Handle(Request request, std::shared_ptr<Exchange> exchange) override;
  Response Refuse(int status, const std::string& message) override;

  // From now on requests get 503.
  void BeginStop() { stopping_ = true; }
  // Returns when the engine calls no listener of ours any more. After the server has stopped.
  void AwaitSessions() { sessions_.AwaitNone(); }

 private:
  // A request on its way to its answer.
  struct Call {
    Request request;
    std::shared_ptr<Exchange> exchange;
    std::string id;
    kv::Instant arrived;
    Route route = Route::kOther;
  };
  class Observer;

  void Dispatch(Call call);
  // None: the caller may go on.
  std::optional<ApiError> CheckMethod(const Call& call, std::string_view allowed) const;
  std::optional<ApiError> CheckToken(const Request& request) const;
  std::optional<ApiError> CheckModel(const std::string& name) const;

  void Health(Call call);
  void MetricsText(Call call);
  void Models(Call call);
  void Chat(Call call);
  void StartChat(Call call, ChatRequest chat);

  void Reply(Call& call, Response response);
  void ReplyError(Call& call, const ApiError& error) { Reply(call, ErrorResponse(error)); }
  std::string ModelJson() const;
  std::string RequestId(const Request& request);
  std::string FreshId(std::string_view prefix);
  // One line for people. Never of what was said.
  void LogAnswer(const std::string& id, Route route, int status, kv::Nanos took,
                 std::string_view more);

  const ApiOptions options_;
  const kv::Sha256Digest token_digest_;
  engine::Engine& engine_;
  kv::Clock& clock_;
  kv::Log& log_;
  const int64_t created_;  // Seconds since 1970.

  Metrics metrics_;
  SessionCount sessions_;
  std::atomic<bool> stopping_ = false;
  kv::Random ids_;  // Server's thread only.
};

}  // namespace cairn::gateway
