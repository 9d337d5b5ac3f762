// Listens, accepts, and stops.
#include "gateway/http/server.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

#include "gateway/http/connection.h"

namespace cairn::gateway {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);

// Connections beyond the limit that are being told so.
constexpr uint32_t kRefusingMax = 64;
// When the process is out of file descriptors: until some connection may have closed.
constexpr auto kAcceptRetry = std::chrono::milliseconds(100);

kv::Status ListenError(const ServerOptions& options, const error_code& error) {
  const std::string where = options.address + ":" + std::to_string(options.port);
  if (error == asio::error::address_in_use) {
    return kv::Status(kv::Code::kConflict, "port " + std::to_string(options.port) + " on " +
                                               options.address +
                                               " is in use by another process; choose another one");
  }
  const bool ours =
      error == asio::error::access_denied || error == boost::system::errc::address_not_available;
  return kv::Status(ours ? kv::Code::kInvalid : kv::Code::kUnavailable,
                    "cannot listen on " + where + ": " + error.message());
}

class AsioServer final : public Server {
 public:
  AsioServer(ServerOptions options, Handler& handler, kv::Log& log)
      : state_{.options = std::move(options), .handler = handler, .log = log},
        pool_(1),
        acceptor_(pool_),
        grace_(pool_) {
    state_.when_empty = [this] { grace_.cancel(); };
  }

  ~AsioServer() override { Stop(); }

  kv::Status Listen() {
    error_code error;
    const auto address = asio::ip::make_address(state_.options.address, error);
    if (error) {
      return kv::Status(kv::Code::kInvalid,
                        "'" + state_.options.address + "' is not an IP address to listen on");
    }
    const tcp::endpoint endpoint(address, state_.options.port);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (!error) port_ = acceptor_.local_endpoint(error).port();
    if (error) return ListenError(state_.options, error);
    asio::co_spawn(pool_, Accept(), asio::detached);
    return kv::Status();
  }

  uint16_t port() const override { return port_; }
  uint32_t connections() const override { return state_.open.load(); }

  void Stop() override {
    const std::lock_guard lock(stop_mutex_);
    if (stopped_) return;
    stopped_ = true;
    asio::post(pool_, [this] { BeginStop(); });
    pool_.join();  // Returns when nothing is left to do: the last connection has ended.
  }

 private:
  asio::awaitable<void> Accept() {
    while (acceptor_.is_open()) {
      auto [error, socket] = co_await acceptor_.async_accept(kTuple);
      if (state_.stopping) co_return;
      if (!error) {
        Admit(std::move(socket));
      } else if (error != asio::error::connection_aborted) {
        asio::steady_timer pause(pool_, kAcceptRetry);
        co_await pause.async_wait(kTuple);
      }
    }
  }

  void Admit(tcp::socket socket) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    const size_t open = state_.connections.size();
    if (open >= state_.options.connections_max + kRefusingMax) return;
    const auto connection = std::make_shared<Connection>(std::move(socket), state_);
    if (open < state_.options.connections_max) {
      connection->Start();
    } else {
      connection->StartRefusing();
    }
  }

  void BeginStop() {
    state_.stopping = true;
    error_code ignored;
    acceptor_.close(ignored);
    ForEachConnection([](Connection& connection) { connection.StopWhenIdle(); });
    if (state_.connections.empty()) return;
    grace_.expires_after(std::chrono::nanoseconds(state_.options.stop_grace.value));
    grace_.async_wait([this](const error_code& error) {
      if (error) return;
      ForEachConnection([](Connection& connection) { connection.Abort(); });
    });
  }

  // `act` may end connections, even others than its own.
  template <typename Act>
  void ForEachConnection(Act act) {
    std::vector<std::shared_ptr<Connection>> all;
    for (Connection* connection : state_.connections) all.push_back(connection->shared_from_this());
    for (const auto& connection : all) act(*connection);
  }

  ServerState state_;  // Outlives the pool, and so every connection.
  asio::thread_pool pool_;
  tcp::acceptor acceptor_;
  asio::steady_timer grace_;
  uint16_t port_ = 0;

  std::mutex stop_mutex_;
  bool stopped_ = false;
};

}  // namespace

kv::Result<std::unique_ptr<Server>> Server::Start(ServerOptions options, Handler& handler,
                                                  kv::Log& log) {
  try {
    auto server = std::make_unique<AsioServer>(std::move(options), handler, log);
    KV_RETURN_IF_ERROR(server->Listen());
    return std::unique_ptr<Server>(std::move(server));
  } catch (const std::exception& error) {
    return kv::Status(kv::Code::kUnavailable, std::string("cannot start: ") + error.what());
  }
}

}  // namespace cairn::gateway
