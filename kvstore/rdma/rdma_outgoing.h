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
  void Probe();
  Task<void> Stop();

 private:
  // One of the connections to a peer; the first is for control, the others for data.
  struct Slot {
    uint64_t connection_id = 0;  // 0 while there is none.
    uint64_t bytes = 0;          // Of the calls that use it.
  };
  struct Peer {
    std::vector<SocketAddress> addresses;
    std::vector<Slot> slots;
    uint64_t bytes = 0;
    uint32_t calls = 0;
    Instant retry_at;  // Before then no connection is tried.
  };
  struct Connection {
    Connection(const RdmaParts& parts, uint64_t id, size_t place)
        : rdma(parts, id), slot(place), greeted(parts.poller.loop()) {}
    RdmaConnection rdma;
    const size_t slot;
    bool usable = false;
    Event greeted;  // Connecting and the hello are over, one way or the other.
  };
  struct PendingCall;
  // Counts a call for as long as it is on its way.
  class Share;

  Status CheckCall(const Network::Outgoing& request, Instant deadline) const;
  // The slot to use, with a connection, begun if there is none.
  Result<Slot*> SlotFor(NodeId id, Peer& peer, bool has_payload);
  Status Connect(NodeId id, Peer& peer, size_t slot);
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
  std::map<NodeId, Peer> peers_;  // None is ever removed.
  std::map<uint64_t, std::unique_ptr<Connection>> connections_;
  std::map<uint64_t, PendingCall*> pending_;
  uint64_t bytes_ = 0;  // Of all calls on their way.
  uint64_t next_connection_id_ = 1;
  uint64_t next_request_id_ = 1;
  bool stopping_ = false;
  Gate gate_;
};

}  // namespace cairn::kv
