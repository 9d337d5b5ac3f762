// The answering half of a TcpNetwork: peers that connect, their requests, and the way back.
#pragma once

#include <cstdint>
#include <map>

#include "kvstore/async/event.h"
#include "kvstore/async/gate.h"
#include "kvstore/os/request_admission.h"
#include "kvstore/os/tcp_options.h"

namespace cairn::kv {

class TcpIncoming {
 public:
  // Accepts from now on, unless `listener` is -1. It is closed by the destructor.
  TcpIncoming(const TcpParts& parts, int listener);
  ~TcpIncoming();

  void Serve(Network::Handler handler);
  uint16_t port() const { return port_; }
  void CloseStalled(Instant since);
  Task<void> Stop();

 private:
  struct Connection;
  Task<void> AcceptConnections();
  Task<void> RunConnection(int socket);
  Task<void> CloseUnlessGreeted(Connection& connection);
  Task<Received> ReceiveRequests(Connection& connection);
  Task<Received> TakeRequest(Connection& connection, FrameHeader header);
  Task<void> Answer(uint64_t connection_id, FrameHeader request, Bytes body, Bytes payload,
                    RequestAdmission::Permits permits);
  Task<void> SendAnswer(uint64_t connection_id, FrameHeader request, Network::Reply reply);
  Task<void> SendRefusal(uint64_t connection_id, FrameHeader request);

  const TcpParts parts_;
  const int listener_;  // -1 when it does not listen.
  uint16_t port_ = 0;
  Network::Handler handler_;
  HelloComplaints complaints_;
  std::map<uint64_t, Connection*> connections_;
  RequestAdmission admission_;
  uint64_t next_connection_id_ = 1;
  Event stopping_;
  Gate gate_;
};

}  // namespace cairn::kv
