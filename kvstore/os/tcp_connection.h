// One connection between two nodes: the hello, then frames each way.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kvstore/async/task.h"
#include "kvstore/os/poller.h"
#include "kvstore/os/socket_stream.h"
#include "kvstore/os/tcp_frame.h"
#include "kvstore/os/tcp_hello.h"

namespace cairn::kv {

// On the poller's loop thread only. Owned and run as a SocketStream is.
class TcpConnection {
 public:
  // Takes `socket` over; it may not be connected yet: what is sent waits. `poller` must outlive it.
  TcpConnection(Poller& poller, int socket, uint64_t id);

  // The hello, before anything else is received: as the one that connected, and as the other.
  Task<HelloOutcome> Introduce(const NodeIdentity& me, NodeId callee, ConnectionRole role);
  Task<HelloOutcome> Admit(const NodeIdentity& me);

  // A header, then its body, then its payload from stream(), whole, then the next header.
  Task<Received> ReceiveHeader(FrameHeader& header);
  Task<Received> ReceiveBody(Bytes& body);

  SocketStream& stream() { return stream_; }
  uint64_t id() const { return id_; }
  // Valid after the hello; before, whom it claims to be.
  NodeId peer() const { return peer_; }
  ConnectionRole role() const { return role_; }
  uint16_t version() const { return version_; }

 private:
  Task<HelloOutcome> StartTls(const NodeIdentity& me, TlsRole role);

  SocketStream stream_;
  const uint64_t id_;
  NodeId peer_;
  ConnectionRole role_ = ConnectionRole::kControl;
  uint16_t version_ = 0;
  FrameHeaderBytes header_{};
  uint32_t body_size_ = 0;
};

}  // namespace cairn::kv
