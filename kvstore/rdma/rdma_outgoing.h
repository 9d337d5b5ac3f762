// The calling half of an RdmaNetwork: connections to peers, and what waits for their answers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kvstore/async/event.h"
#include "kvstore/async/gate.h"
#include "kvstore/os/peer_calls.h"
#include "kvstore/rdma/rdma_connection.h"

namespace cairn::kv {

class RdmaOutgoing {
 public:
  // Connections begin at `sources` in turn, unless it is empty.
  RdmaOutgoing(const RdmaParts& parts, std::vector<SocketAddress> sources);

  // One address of each of its ports.
  void SetPeer(NodeId peer, std::vector<SocketAddress> addresses);
  Task<Result<Network::Answer>> Call(NodeId peer, Network::Outgoing request, MutableByteSpan into,
                                     Instant deadline);
  // As Network::Abandon: closes the connections to the peer.
  void Abandon(NodeId peer);
  void Probe();
  Task<void> Stop();

 private:
  struct Connection {
    Connection(const RdmaParts& parts, uint64_t id, NodeId other, size_t place)
        : rdma(parts, id), peer(other), slot(place), greeted(parts.poller.loop()) {}
    RdmaConnection rdma;
    const NodeId peer;
    const size_t slot;
    bool usable = false;
    Event greeted;  // Connecting and the hello are over, one way or the other.
  };
  struct PendingCall;

  Status Connect(NodeId peer, size_t slot, uint64_t connection_id);
  Task<void> RunConnection(uint64_t id, NodeId peer);
  Task<HelloOutcome> Greet(Connection& connection, NodeId peer);
  Task<void> CloseUnlessGreeted(Connection& connection);
  void EndConnection(uint64_t id, NodeId peer);

  // Waits until it may be used, or cannot, or the deadline.
  Task<Status> AwaitGreeted(uint64_t connection_id, NodeId peer, Instant deadline);
  Task<Result<Network::Answer>> Ask(uint64_t connection_id, NodeId peer,
                                    Network::Outgoing request, MutableByteSpan into,
                                    Instant deadline);
  // Returns when nothing of the call's memory is in use any more.
  Task<void> Settle(PendingCall& call, RdmaWork& sending);
  Task<void> Cancel(PendingCall& call);
  // Waits for it a moment; then the connection is closed, which sets it.
  Task<void> AwaitOrCut(Event& free, uint64_t connection_id);
  Task<Received> ReceiveAnswers(RdmaConnection& connection);
  Received TakeAnswer(RdmaConnection& connection, RdmaFrame frame);

  const RdmaParts parts_;
  const std::vector<SocketAddress> sources_;
  HelloComplaints complaints_;
  std::map<NodeId, std::vector<SocketAddress>> addresses_;
  PeerCalls calls_;
  std::map<uint64_t, std::unique_ptr<Connection>> connections_;
  std::map<uint64_t, PendingCall*> pending_;
  uint64_t next_request_id_ = 1;
  Gate gate_;
};

}  // namespace cairn::kv
