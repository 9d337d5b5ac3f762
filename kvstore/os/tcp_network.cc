// Checks the options, and watches both halves for connections that stall.
#include "kvstore/os/tcp_network.h"

#include <utility>

#include "kvstore/os/socket_address.h"

namespace cairn::kv {
namespace {

constexpr size_t kSecretSizeMin = 16;
constexpr uint32_t kDataConnectionsMax = 64;

Status CheckOptions(const TcpNetworkOptions& options) {
  if (!options.secret.empty() && options.secret.size() < kSecretSizeMin) {
    return {Code::kInvalid, "a cluster secret has at least 16 bytes"};
  }
  if (options.data_connections < 1 || options.data_connections > kDataConnectionsMax) {
    return {Code::kInvalid, "data_connections is 1 to 64"};
  }
  if (options.peer_bytes_max < kCallBytesMax || options.bytes_max < options.peer_bytes_max) {
    return {Code::kInvalid, "peer_bytes_max is at least 148 MiB, and at most bytes_max"};
  }
  if (options.versions.min > options.versions.max) {
    return {Code::kInvalid, "the range of versions is empty"};
  }
  return {};
}

NodeIdentity IdentityOf(const TcpNetworkOptions& options) {
  return {.self = options.self,
          .cluster = Sha256(AsBytes(options.cluster)),
          .secret = options.secret,
          .versions = options.versions,
          .tls = options.tls};
}

}  // namespace

Result<std::unique_ptr<TcpNetwork>> TcpNetwork::Create(Poller& poller, Clock& clock, Log& log,
                                                       const TcpNetworkOptions& options) {
  KV_RETURN_IF_ERROR(CheckOptions(options));
  int listener = -1;
  if (!options.listen.empty()) {
    KV_ASSIGN_OR_RETURN(const SocketAddress address, SocketAddress::Parse(options.listen));
    if (options.secret.empty() && !address.is_loopback()) {
      return Status(Code::kInvalid,
                    options.listen + " can be reached from elsewhere: set a cluster secret");
    }
    KV_ASSIGN_OR_RETURN(listener, address.Listen());
  }
  return std::unique_ptr<TcpNetwork>(new TcpNetwork(poller, clock, log, options, listener));
}

TcpNetwork::TcpNetwork(Poller& poller, Clock& clock, Log& log, const TcpNetworkOptions& options,
                       int listener)
    : options_(options),
      identity_(IdentityOf(options)),
      clock_(clock),
      outgoing_(TcpParts{poller, clock, log, options_, identity_, stats_}),
      incoming_(TcpParts{poller, clock, log, options_, identity_, stats_}, listener),
      stopping_(poller.loop()),
      gate_(poller.loop()) {
  gate_.Hold(CloseStalled());
}

TcpNetwork::~TcpNetwork() { KV_CHECK(gate_.closed()); }

Task<Result<Network::Answer>> TcpNetwork::Call(NodeId peer, Outgoing request,
                                               MutableByteSpan into, Instant deadline) {
  return outgoing_.Call(peer, std::move(request), into, deadline);
}

Task<void> TcpNetwork::Stop() {
  stopping_.Set();
  Task<void> outgoing = outgoing_.Stop();
  co_await incoming_.Stop();
  co_await outgoing;
  co_await gate_.Close();
}

Task<void> TcpNetwork::CloseStalled() {
  const Nanos step{options_.stall_timeout.value / 4};
  while (!stopping_.is_set()) {
    co_await clock_.SleepUntil(clock_.Now() + step, &stopping_);
    const Instant since = clock_.Now() - options_.stall_timeout;
    outgoing_.CloseStalled(since);
    incoming_.CloseStalled(since);
  }
}

}  // namespace cairn::kv
