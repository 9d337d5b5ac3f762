// The calling half of a TcpNetwork: connections to peers, and what waits for their answers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kvstore/async/event.h"
#include "kvstore/async/gate.h"
#include "kvstore/os/socket_address.h"
#include "kvstore/os/tcp_options.h"

namespace cairn::kv {

class TcpOutgoing {
 public:
  explicit TcpOutgoing(const TcpParts& parts);

  Status SetPeer(NodeId peer, const std::string& address);
  Task<Result<Network::Answer>> Call(NodeId peer, Network::Outgoing request, MutableByteSpan into,
                                     Instant deadline);
  // Of peers that have kept us waiting in the middle of a frame since then.
  void CloseStalled(Instant since);
  Task<void> Stop();

 private:
  // One of the connections to a peer; the first is for control, the others for data.
  struct Slot {
    uint64_t connection_id = 0;  // 0 while there is none.
    uint64_t bytes = 0;          // Of the calls that use it.
  };
  struct Peer {
    SocketAddress address;
    std::vector<Slot> slots;
    uint64_t bytes = 0;
    uint32_t calls = 0;
    Instant retry_at;  // Before then no connection is tried.
  };
  struct Connection {
    Connection(const TcpParts& parts, int socket, uint64_t id, size_t place)
        : tcp(parts.poller, socket, id), slot(place), greeted(parts.poller.loop()) {}
    TcpConnection tcp;
    const size_t slot;
    Event greeted;  // The hello is over, one way or the other.
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

  Task<void> SendRequest(TcpConnection& connection, SocketStream::Outgoing frame,
                         PendingCall& call);
  // Returns when nothing of the call's memory is in use any more.
  Task<void> Settle(PendingCall& call, uint64_t request_id);
  // Waits for it a moment; then the connection is closed, which sets it.
  Task<void> AwaitOrCut(Event& free, uint64_t connection_id);
  Task<Received> ReceiveAnswers(TcpConnection& connection);
  Task<Received> TakeAnswer(TcpConnection& connection, FrameHeader header);
  Task<Received> Land(TcpConnection& connection, FrameHeader header, Bytes body,
                      PendingCall& call);

  const TcpParts parts_;
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
