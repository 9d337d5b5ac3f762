// The gateway: an OpenAI-compatible HTTP server in front of one engine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/api/engine.h"
#include "gateway/api/metrics_source.h"
#include "gateway/http/server.h"
#include "kvstore/base/log.h"
#include "kvstore/base/result.h"
#include "kvstore/io/clock.h"

namespace cairn::gateway {

struct GatewayOptions {
  ServerOptions server{};                         // Address, port and limits.
  std::string bearer_token{};                     // Wanted on /v1/...; empty: everybody may call.
  std::vector<MetricsSource*> metrics_sources{};  // Outlive the gateway.
};

class Gateway {
 public:
  virtual ~Gateway() = default;  // Calls Stop.

  // Listens at once, so the engine must be ready. `engine`, `clock` (of which only Now and UnixNow
  // are used, from any thread) and `log` outlive the gateway. Errors are those of Server::Start.
  static kv::Result<std::unique_ptr<Gateway>> Start(GatewayOptions options, engine::Engine& engine,
                                                    kv::Clock& clock, kv::Log& log);

  virtual uint16_t port() const = 0;

  // New requests get 503, answers under way have `server.stop_grace` to end and are then
  // cancelled. Returns when the engine calls nothing of ours any more: it must still be running.
  virtual void Stop() = 0;
};

}  // namespace cairn::gateway
