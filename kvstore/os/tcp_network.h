// The Network between real nodes: one TCP connection to each peer, answers in any order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "kvstore/async/gate.h"
#include "kvstore/async/semaphore.h"
#include "kvstore/base/log.h"
#include "kvstore/io/clock.h"
#include "kvstore/io/network.h"
#include "kvstore/os/poller.h"
#include "kvstore/os/socket_address.h"
#include "kvstore/os/tcp_connection.h"

namespace cairn::kv {

struct TcpNetworkOptions {
  NodeId self;
  // "127.0.0.1:0" and the like; empty for a node that only calls.
  std::string listen;
};

inline constexpr uint64_t kRequestsAnsweredAtOnceMax = 4096;
inline constexpr uint64_t kConnectionsMax = 4096;

// Connects to a peer at the first call to it, and again at the first call after a failure. There
// is no authentication here: keep it on a trusted network.
class TcpNetwork final : public Network, private TcpConnection::Sink {
 public:
  // The first three must outlive the result. Errors as of SocketAddress.
  static Result<std::unique_ptr<TcpNetwork>> Create(Poller& poller, Clock& clock, Log& log,
                                                    const TcpNetworkOptions& options);
  ~TcpNetwork() override;

  // Where `peer` listens, from the next connection on. kInvalid when it is not an address.
  Status SetPeer(NodeId peer, const std::string& address);
  uint16_t port() const { return port_; }

  Task<Result<Bytes>> Call(NodeId target, Bytes request, Instant deadline) override;
  void Serve(Handler handler) override;

  // Ends all connections and waits for the handlers that still run; calls in flight end with
  // kUnavailable. Call it once, before the destructor.
  Task<void> Stop();

  // Frames that made no sense; each has cost its sender the connection.
  uint64_t malformed_frames() const { return malformed_frames_; }
  uint64_t connections() const { return connections_.size(); }

 private:
  struct Peer {
    SocketAddress address;
    uint64_t connection_id = 0;  // 0 while there is none.
  };
  struct Connection {
    std::unique_ptr<TcpConnection> stream;
    std::optional<NodeId> peer;  // Whom we connected to; nothing when they connected to us.
  };
  struct PendingCall {
    PendingCall(Loop& loop, uint64_t connection) : done(loop), connection_id(connection) {}
    Event done;
    uint64_t connection_id;
    std::optional<Bytes> answer;
  };

  TcpNetwork(Poller& poller, Clock& clock, Log& log, NodeId self, int listener);

  // The connection to `target`, begun if there is none. Null, and why, when that is impossible.
  Result<TcpConnection*> ConnectionTo(NodeId target);
  uint64_t AddConnection(int socket, std::optional<NodeId> peer);
  Task<void> RunOutgoing(uint64_t id, SocketAddress address);
  Task<void> RunIncoming(uint64_t id);
  void EndConnection(uint64_t id);
  Task<void> AcceptConnections();

  Task<bool> OnFrame(uint64_t connection_id, Frame frame) override;
  void OnMalformed(uint64_t connection_id) override;
  Task<void> Answer(uint64_t connection_id, Frame request, Semaphore::Permit permit);

  // Constant.
  Poller& poller_;
  Clock& clock_;
  Log& log_;
  const NodeId self_;
  const int listener_;  // -1 when it does not listen.
  uint16_t port_ = 0;

  Handler handler_;
  std::map<NodeId, Peer> peers_;
  std::map<uint64_t, Connection> connections_;
  std::map<uint64_t, PendingCall*> pending_;
  uint64_t next_connection_id_ = 1;
  uint64_t next_request_id_ = 1;
  uint64_t malformed_frames_ = 0;
  Event stopping_;
  Semaphore answering_;
  Gate gate_;
};

}  // namespace cairn::kv
