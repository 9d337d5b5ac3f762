// Checks the options, and watches both halves for connections that stall.
#include "kvstore/os/tcp_network.h"

#include <utility>

#include "kvstore/os/node_options.h"
#include "kvstore/os/socket_address.h"

namespace cairn::kv {
namespace {

NodeIdentity WithTls(NodeIdentity identity, const TcpNetworkOptions& options) {
  identity.tls = options.tls;
  return identity;
}

}  // namespace

Result<std::unique_ptr<TcpNetwork>> TcpNetwork::Create(Poller& poller, Clock& clock, Log& log,
                                                       const TcpNetworkOptions& options) {
  KV_RETURN_IF_ERROR(CheckNodeOptions(options));
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
      identity_(WithTls(IdentityOf(options), options)),
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
