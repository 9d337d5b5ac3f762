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
#include "kvstore/os/peer_calls.h"
#include "kvstore/os/socket_address.h"
#include "kvstore/os/tcp_options.h"

namespace cairn::kv {

class TcpOutgoing {
 public:
  explicit TcpOutgoing(const TcpParts& parts);

  Status SetPeer(NodeId peer, const std::string& address);
  Task<Result<Network::Answer>> Call(NodeId peer, Network::Outgoing request, MutableByteSpan into,
                                     Instant deadline);
  // As Network::Abandon: closes the connections to the peer.
  void Abandon(NodeId peer);
  // Of peers that have kept us waiting in the middle of a frame since then.
  void CloseStalled(Instant since);
  Task<void> Stop();

 private:
  struct Connection {
    Connection(const TcpParts& parts, int socket, uint64_t id, NodeId other, size_t place)
        : tcp(parts.poller, socket, id), peer(other), slot(place), greeted(parts.poller.loop()) {}
    TcpConnection tcp;
    const NodeId peer;
    const size_t slot;
    Event greeted;  // The hello is over, one way or the other.
  };
  struct PendingCall;

  Status Connect(NodeId peer, size_t slot, uint64_t connection_id);
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
  std::map<NodeId, SocketAddress> addresses_;
  PeerCalls calls_;
  std::map<uint64_t, std::unique_ptr<Connection>> connections_;
  std::map<uint64_t, PendingCall*> pending_;
  uint64_t next_request_id_ = 1;
  Gate gate_;
};

}  // namespace cairn::kv
