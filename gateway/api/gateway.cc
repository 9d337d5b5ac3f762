// Puts the server and the routes together.
#include "gateway/api/gateway.h"

#include <atomic>
#include <exception>
#include <utility>

#include "gateway/api/api_handler.h"

namespace cairn::gateway {
namespace {

class HttpGateway final : public Gateway {
 public:
  HttpGateway(ApiOptions options, engine::Engine& engine, kv::Clock& clock, kv::Log& log)
      : handler_(WithConnections(std::move(options)), engine, clock, log) {}

  ~HttpGateway() override { Stop(); }

  kv::Status Listen(ServerOptions options, kv::Log& log) {
    KV_ASSIGN_OR_RETURN(server_, Server::Start(std::move(options), handler_, log));
    listening_ = server_.get();
    return kv::Status();
  }

  uint16_t port() const override { return server_->port(); }

  void Stop() override {
    handler_.BeginStop();
    if (server_) server_->Stop();
    handler_.AwaitSessions();
  }

 private:
  ApiOptions WithConnections(ApiOptions options) {
    options.connections = [this] {
      const Server* server = listening_;
      return server == nullptr ? 0u : server->connections();
    };
    return options;
  }

  // Null until Listen has returned, while the first requests may be coming in already.
  std::atomic<const Server*> listening_ = nullptr;
  ApiHandler handler_;  // Outlives the server.
  std::unique_ptr<Server> server_;
};

}  // namespace

kv::Result<std::unique_ptr<Gateway>> Gateway::Start(GatewayOptions options, engine::Engine& engine,
                                                    kv::Clock& clock, kv::Log& log) {
  try {
    ApiOptions api;
    api.bearer_token = std::move(options.bearer_token);
    api.metrics_sources = std::move(options.metrics_sources);
    auto gateway = std::make_unique<HttpGateway>(std::move(api), engine, clock, log);
    KV_RETURN_IF_ERROR(gateway->Listen(std::move(options.server), log));
    return std::unique_ptr<Gateway>(std::move(gateway));
  } catch (const std::exception& error) {
    return kv::Status(kv::Code::kUnavailable, std::string("cannot start: ") + error.what());
  }
}

}  // namespace cairn::gateway
