// Accepts, says hello, reads requests, and watches for clients that are gone.
#include "kvstore/serve/server.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "kvstore/base/hmac.h"
#include "kvstore/os/entropy.h"
#include "kvstore/os/socket_address.h"
#include "kvstore/serve/request_handler.h"

namespace cairn::kv {
namespace {

// Lanes of one session, the control lane included.
constexpr size_t kLanesMax = 17;
constexpr Nanos kAcceptRetry = Millis(50);
constexpr std::string_view kUnixPrefix = "unix:";

Status CheckOptions(const ServerOptions& options) {
  if (options.unix_path.empty() && options.tcp_address.empty()) {
    return {Code::kInvalid, "a server needs unix_path or tcp_address"};
  }
  if (options.requests_max == 0 || options.sessions_max == 0) {
    return {Code::kInvalid, "requests_max and sessions_max are at least 1"};
  }
  if (options.payload_bytes_max < kBlockSizeMax || options.session_bytes_max < kBlockSizeMax) {
    return {Code::kInvalid, "payload_bytes_max and session_bytes_max are at least 64 MiB"};
  }
  if (options.session_timeout < Millis(10) || options.stall_timeout < Millis(10)) {
    return {Code::kInvalid, "session_timeout and stall_timeout are at least 10 ms"};
  }
  return {};
}

Id128 DrawSecret() {
  Id128 secret;
  FillFromKernel({reinterpret_cast<uint8_t*>(&secret), sizeof(secret)});
  return secret;
}

}  // namespace

class Server::Core {
 public:
  Core(ServerParts parts, ServerOptions options)
      : parts_(parts),
        options_(std::move(options)),
        handler_(parts_, options_, stats_),
        stopping_(parts_.poller.loop()),
        tasks_(parts_.poller.loop()) {}

  ~Core() { KV_CHECK(tasks_.closed() && tasks_.count() == 0); }

  Status Start() {
    KV_RETURN_IF_ERROR(CheckOptions(options_));
    if (!options_.unix_path.empty()) {
      KV_RETURN_IF_ERROR(Listen(std::string(kUnixPrefix) + options_.unix_path, true));
    }
    if (!options_.tcp_address.empty()) {
      KV_RETURN_IF_ERROR(Listen(options_.tcp_address, false));
      tcp_port_ = SocketAddress::PortOf(listeners_.back().socket);
    }
    for (const Listener& listener : listeners_) tasks_.Hold(Accept(listener));
    tasks_.Hold(Watch());
    return Status();
  }

  // What a failed Start leaves.
  void Abandon() {
    for (const Listener& listener : listeners_) {
      parts_.poller.Close(listener.socket);
      if (listener.is_unix) unlink(options_.unix_path.c_str());
    }
    (void)tasks_.Close();
  }

  Task<void> Stop() {
    stopping_.Set();
    for (const Listener& listener : listeners_) shutdown(listener.socket, SHUT_RDWR);
    for (Connection* connection : connections_) connection->lane.Close();
    co_await tasks_.Close();
    if (!options_.unix_path.empty()) unlink(options_.unix_path.c_str());
  }

  uint16_t tcp_port() const { return tcp_port_; }
  const ServerStats& stats() const { return stats_; }

 private:
  struct Listener {
    int socket = -1;
    bool is_unix = false;
  };

  Status Listen(const std::string& text, bool is_unix) {
    KV_ASSIGN_OR_RETURN(const SocketAddress address, SocketAddress::Parse(text));
    KV_ASSIGN_OR_RETURN(const int socket, address.Listen());
    listeners_.push_back({.socket = socket, .is_unix = is_unix});
    return Status();
  }

  Task<void> Accept(Listener listener) {
    while (!stopping_.is_set()) {
      const int64_t socket = co_await parts_.poller.Accept(listener.socket);
      if (stopping_.is_set()) {
        if (socket >= 0) parts_.poller.Close(static_cast<int>(socket));
        break;
      }
      if (socket < 0) {
        // Out of descriptors, most likely: some will be free again.
        const Instant again = parts_.clock.Now() + kAcceptRetry;
        co_await parts_.clock.SleepUntil(again, &stopping_);
        continue;
      }
      tasks_.Hold(Serve(static_cast<int>(socket), listener.is_unix));
    }
    parts_.poller.Close(listener.socket);
  }

  Task<Received> Encrypt(Connection& connection) {
    if (connection.is_unix || options_.tls == nullptr) co_return Received::kOk;
    const Status status =
        co_await connection.lane.StartTls(options_.tls->NewSession(TlsRole::kCallee, ""));
    if (status.ok()) co_return Received::kOk;
    ++stats_.handshakes_refused;
    parts_.log.Warning("a client is refused: " + status.message());
    connection.lane.Close();
    co_return Received::kEnded;
  }

  // The whole life of one connection.
  Task<void> Serve(int socket, bool is_unix) {
    Connection connection(parts_.poller, socket, is_unix);
    connections_.insert(&connection);
    ++stats_.connections;
    Received received = co_await Encrypt(connection);
    Task<void> sending = connection.lane.SendFrames();
    if (received == Received::kOk) received = co_await Hello(connection);
    while (received == Received::kOk) {
      wire::FrameHeader header;
      received = co_await connection.lane.ReceiveHeader(header);
      if (received == Received::kOk) received = co_await handler_.Receive(connection, header);
    }
    if (received == Received::kMalformed) {
      ++stats_.malformed_frames;
      parts_.log.Warning("a client sent a malformed frame: its connection is closed");
    }
    // Any lost lane ends the session: its client makes a new one.
    if (connection.session != nullptr) connection.session->End();
    connection.lane.Close();
    co_await connection.requests.Close();
    co_await sending;
    co_await LeaveSession(connection);
    connections_.erase(&connection);
    --stats_.connections;
  }

  Task<Received> Hello(Connection& connection) {
    wire::FrameHeader header;
    Received received = co_await connection.lane.ReceiveHeader(header);
    if (received != Received::kOk) co_return received;
    const bool is_hello = header.verb == wire::Verb::kHello && header.payload_size == 0 &&
                          header.direction == wire::Direction::kRequest &&
                          header.body_size <= 64 * kKiB;
    if (!is_hello) co_return Received::kMalformed;
    std::vector<uint8_t> body;
    received = co_await connection.lane.ReceiveBody(body);
    if (received != Received::kOk) co_return received;
    const auto hello = wire::Parse<wire::HelloRequest>(body);
    if (!hello.ok()) co_return Received::kMalformed;
    const Result<wire::HelloAnswer> answer = Welcome(connection, hello.value());
    if (!answer.ok()) ++stats_.sessions_refused;
    const wire::FrameHeader head{.verb = wire::Verb::kHello,
                                 .direction = wire::Direction::kAnswer,
                                 .request_id = header.request_id};
    Lane::Outgoing outgoing{.frame = wire::EncodeFrame(head, wire::EncodeAnswer(answer))};
    const bool sent = co_await connection.lane.Send(std::move(outgoing));
    co_return sent && answer.ok() ? Received::kOk : Received::kEnded;
  }

  Result<wire::HelloAnswer> Welcome(Connection& connection, const wire::HelloRequest& hello) {
    if (hello.version_min > wire::kVersion || hello.version_max < wire::kVersion) {
      return Status(Code::kConflict, std::string("this server speaks version ")
                                         .append(std::to_string(wire::kVersion))
                                         .append(" of the protocol only"));
    }
    const bool is_data = hello.lane == wire::LaneKind::kData;
    KV_ASSIGN_OR_RETURN(const std::shared_ptr<Session> session,
                        is_data ? FindSession(hello.session) : OpenSession(connection, hello));
    connection.session = session;
    connection.is_control = !is_data;
    session->connections.push_back(&connection);
    const bool shares = connection.is_unix;
    return wire::HelloAnswer{
        .features = hello.features & (shares ? wire::kFeatureSharedMemory : 0),
        .session = session->secret,
        .requests_max = options_.requests_max,
        .session_bytes_max = std::min(options_.session_bytes_max, options_.payload_bytes_max),
        .regions_max = options_.regions_max,
        .region_bytes_max = options_.region_bytes_max,
        .session_timeout_nanos = options_.session_timeout.value};
  }

  Result<std::shared_ptr<Session>> FindSession(const Id128& secret) {
    const auto found = sessions_.find(secret);
    if (found == sessions_.end() || found->second->ended) {
      return Status(Code::kNotFound, "no such session");
    }
    if (found->second->connections.size() >= kLanesMax) {
      return Status(Code::kOverloaded, "too many lanes");
    }
    return found->second;
  }

  Result<std::shared_ptr<Session>> OpenSession(const Connection& connection,
                                               const wire::HelloRequest& hello) {
    if (sessions_.size() >= options_.sessions_max || stopping_.is_set()) {
      return Status(Code::kOverloaded, "too many clients: see sessions_max");
    }
    const RegionLimits limits{.regions_max = options_.regions_max,
                              .bytes_max = options_.region_bytes_max};
    auto session =
        std::make_shared<Session>(parts_.poller.loop(), limits, stats_, parts_.network);
    session->id = parts_.sessions.OpenSession();
    session->secret = DrawSecret();
    session->name = hello.name;
    session->may_administer =
        connection.is_unix ||
        (!options_.admin_token.empty() &&
         SameSecret(AsBytes(options_.admin_token), AsBytes(hello.admin_token)));
    sessions_.emplace(session->secret, session);
    ++stats_.sessions;
    ++stats_.sessions_opened;
    parts_.log.Debug(std::string("client connected: ").append(hello.name));
    return session;
  }

  // A data lane just goes; the control lane waits for the others, then nothing is left in flight
  // that could take a lease, and the session ends.
  Task<void> LeaveSession(Connection& connection) {
    const std::shared_ptr<Session> session = connection.session;
    if (session == nullptr) co_return;
    if (connection.is_control) {
      if (session->connections.size() > 1) {
        Event& lonely = session->lonely;
        co_await lonely;
      }
      session->regions.Clear();
      parts_.sessions.EndSession(session->id);
      sessions_.erase(session->secret);
      --stats_.sessions;
    }
    session->Leave(&connection);
  }

  Task<void> Watch() {
    const Nanos step{std::min(options_.session_timeout, options_.stall_timeout).value / 4};
    while (!stopping_.is_set()) {
      const Instant next = parts_.clock.Now() + step;
      co_await parts_.clock.SleepUntil(next, &stopping_);
      const Instant now = parts_.clock.Now();
      for (Connection* connection : connections_) {
        if (!IsLost(*connection, now)) continue;
        if (connection->session != nullptr) {
          if (!connection->session->ended) {
            ++stats_.sessions_timed_out;
            parts_.log.Warning(std::string("no sign of life, cut off: ")
                                   .append(connection->session->name));
          }
          connection->session->End();
        }
        connection->lane.Close();
      }
    }
  }

  bool IsLost(const Connection& connection, Instant now) const {
    const Instant stalled = connection.lane.stalled_since();
    if (stalled != kNever && now - stalled > options_.stall_timeout) return true;
    if (connection.session == nullptr) return now - connection.opened > options_.session_timeout;
    return connection.is_control &&
           now - connection.lane.last_heard() > options_.session_timeout;
  }

  const ServerParts parts_;
  const ServerOptions options_;
  ServerStats stats_;
  RequestHandler handler_;
  std::vector<Listener> listeners_;
  uint16_t tcp_port_ = 0;
  std::set<Connection*> connections_;
  std::map<Id128, std::shared_ptr<Session>> sessions_;
  Event stopping_;
  Gate tasks_;
};

Server::Server(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::Start(ServerParts parts, ServerOptions options) {
  auto core = std::make_unique<Core>(parts, std::move(options));
  Status started = core->Start();
  if (!started.ok()) {
    core->Abandon();
    return started;
  }
  return std::unique_ptr<Server>(new Server(std::move(core)));
}

uint16_t Server::tcp_port() const { return core_->tcp_port(); }
const ServerStats& Server::stats() const { return core_->stats(); }
Task<void> Server::Stop() { return core_->Stop(); }

}  // namespace cairn::kv
