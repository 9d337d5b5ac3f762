// The answering half of an RdmaNetwork: peers that connect, their requests, and the way back.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "kvstore/async/event.h"
#include "kvstore/async/gate.h"
#include "kvstore/async/semaphore.h"
#include "kvstore/os/request_admission.h"
#include "kvstore/rdma/rdma_connection.h"

namespace cairn::kv {

class RdmaIncoming {
 public:
  explicit RdmaIncoming(const RdmaParts& parts);
  ~RdmaIncoming();

  // Accepts there from now on. kConflict: the address is in use. kInvalid: it is of no RDMA port.
  // Gives the port, which the system chooses if 0 was asked for.
  Result<uint16_t> Listen(SocketAddress address);
  void Serve(Network::Handler handler);
  void Probe();
  Task<void> Stop();

 private:
  struct Connection;
  struct Request;

  void OnConnect(rdma_cm_id& id, const rdma_conn_param& asked);
  Task<void> RunConnection(std::unique_ptr<Connection> connection);
  Task<HelloOutcome> Greet(Connection& connection);
  Task<void> CloseUnlessGreeted(Connection& connection);
  Task<Received> ReceiveRequests(Connection& connection);
  Task<Received> TakeFrame(Connection& connection, RdmaFrame frame);
  void Cancel(Connection& connection, uint64_t request_id);

  // End with an answer or a refusal on its way.
  Task<void> AnswerSmall(std::unique_ptr<Request> request, RequestAdmission::Permits permits);
  Task<void> AnswerLarge(std::unique_ptr<Request> request, Semaphore::Permit body);
  Task<void> Answer(Request& request, Bytes payload);
  // The request's payload, read from the caller's memory. False: it is refused.
  Task<bool> Fetch(Request& request, Bytes& payload);
  // Puts the payload into the caller's memory, and the answer behind it.
  Task<void> Deliver(Request& request, Network::Reply reply);
  void Refuse(Request& request);
  void Forget(const Request& request);
  Task<void> SendRefusal(uint64_t connection_id, uint64_t request_id);
  // The connection of a request that still wants an answer, or null.
  Connection* Wanting(const Request& request);
  Semaphore& WaitingOf(NodeId source);

  const RdmaParts parts_;
  std::vector<rdma_cm_id*> listeners_;
  Network::Handler handler_;
  HelloComplaints complaints_;
  std::map<uint64_t, Connection*> connections_;
  // Requests whose payload waits for memory, by source; none is ever removed.
  std::map<NodeId, std::unique_ptr<Semaphore>> waiting_;
  RequestAdmission admission_;
  uint64_t next_connection_id_ = 1;
  bool stopping_ = false;
  Gate gate_;
};

}  // namespace cairn::kv
