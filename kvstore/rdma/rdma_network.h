// The Network between nodes with RDMA ports: InfiniBand or RoCE, by libibverbs and librdmacm.
//
// Bodies are sent. Payload is not: the callee reads that of a request from the caller's memory, and
// writes that of the answer into it, so that no processor touches it on its way. The calling half
// is rdma_outgoing.h, the answering half rdma_incoming.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kvstore/async/event.h"
#include "kvstore/async/gate.h"
#include "kvstore/rdma/rdma_incoming.h"
#include "kvstore/rdma/rdma_options.h"
#include "kvstore/rdma/rdma_outgoing.h"

namespace cairn::kv {

// Connects to a peer at the first call to it, and again at the first call after a failure, but not
// within `reconnect_after` of a connection that could not be made: until then calls fail at once.
// Both sides of each connection prove that they know the cluster's secret.
class RdmaNetwork final : public Network {
 public:
  // The first three must outlive the result. The log is told of each port, and why it was taken.
  // kUnavailable: no RDMA device, or no connection manager. kInvalid: a limit, the secret or an
  // address makes no sense. kConflict: an address is in use.
  static Result<std::unique_ptr<RdmaNetwork>> Create(Poller& poller, Clock& clock, Log& log,
                                                     const RdmaNetworkOptions& options);
  ~RdmaNetwork() override;

  // Where `peer` listens, from the next connection on: an address of each of its ports, which the
  // connections to it take in turn.
  Status SetPeer(NodeId peer, const std::vector<std::string>& addresses);
  // Of the first address.
  uint16_t port() const { return port_; }

  // Memory that payloads often lie in: it stays registered. Errors as of RdmaRegions.
  Status AddRegion(RdmaRegion region) { return regions_.Add(std::move(region)); }
  void RemoveRegion(MutableByteSpan memory) { regions_.Remove(memory); }

  bool gives_up_alone() const override { return false; }
  void Abandon(NodeId peer) override { outgoing_.Abandon(peer); }
  Task<Result<Answer>> Call(NodeId peer, Outgoing request, MutableByteSpan into,
                            Instant deadline) override;
  void Serve(Handler handler) override { incoming_.Serve(std::move(handler)); }

  // Ends all connections and waits for the handlers that still run; calls in flight end with
  // kUnavailable. Call it once, before the destructor.
  Task<void> Stop();

  const RdmaNetworkStats& stats() const { return stats_; }

 private:
  RdmaNetwork(Poller& poller, Clock& clock, Log& log, const RdmaNetworkOptions& options,
              std::unique_ptr<RdmaEvents> events, std::vector<SocketAddress> addresses);
  RdmaParts Parts(Poller& poller, Log& log);
  Status Listen(std::vector<SocketAddress> addresses);
  Task<void> ProbeSilent();

  // Constant.
  const RdmaNetworkOptions options_;
  const NodeIdentity identity_;
  Clock& clock_;

  RdmaNetworkStats stats_;
  RdmaRegions regions_;
  const std::unique_ptr<RdmaEvents> events_;
  RdmaDevices devices_;
  RdmaOutgoing outgoing_;
  RdmaIncoming incoming_;
  uint16_t port_ = 0;
  Event stopping_;
  Gate gate_;
};

}  // namespace cairn::kv
