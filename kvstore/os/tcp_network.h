// The Network between real nodes: a few TCP connections to each peer, answers in any order.
//
// The calling half is tcp_outgoing.h, the answering half tcp_incoming.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kvstore/async/event.h"
#include "kvstore/async/gate.h"
#include "kvstore/os/tcp_incoming.h"
#include "kvstore/os/tcp_options.h"
#include "kvstore/os/tcp_outgoing.h"

namespace cairn::kv {

// Connects to a peer at the first call to it, and again at the first call after a failure, but not
// within `reconnect_after` of a connection that could not be made: until then calls fail at once.
// Both sides of each connection prove that they know the cluster's secret.
class TcpNetwork final : public Network {
 public:
  // The first three must outlive the result. Errors as of SocketAddress; kInvalid also when a limit
  // is too small, or when `listen` is not of the loopback and there is no secret.
  static Result<std::unique_ptr<TcpNetwork>> Create(Poller& poller, Clock& clock, Log& log,
                                                    const TcpNetworkOptions& options);
  ~TcpNetwork() override;

  // Where `peer` listens, from the next connection on. kInvalid when it is not an address, or not
  // of the loopback and there is no secret.
  Status SetPeer(NodeId peer, const std::string& address) {
    return outgoing_.SetPeer(peer, address);
  }
  uint16_t port() const { return incoming_.port(); }

  void Abandon(NodeId peer) override { outgoing_.Abandon(peer); }
  Task<Result<Answer>> Call(NodeId peer, Outgoing request, MutableByteSpan into,
                            Instant deadline) override;
  void Serve(Handler handler) override { incoming_.Serve(std::move(handler)); }

  // Ends all connections and waits for the handlers that still run; calls in flight end with
  // kUnavailable. Call it once, before the destructor.
  Task<void> Stop();

  const TcpNetworkStats& stats() const { return stats_; }

 private:
  TcpNetwork(Poller& poller, Clock& clock, Log& log, const TcpNetworkOptions& options,
             int listener);
  Task<void> CloseStalled();

  // Constant.
  const TcpNetworkOptions options_;
  const NodeIdentity identity_;
  Clock& clock_;

  TcpNetworkStats stats_;
  TcpOutgoing outgoing_;
  TcpIncoming incoming_;
  Event stopping_;
  Gate gate_;
};

}  // namespace cairn::kv
