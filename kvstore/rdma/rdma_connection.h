// One connection between two nodes: found and made by the connection manager, then the hello, then
// frames and transfers (rdma_queue.h).
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "kvstore/os/socket_address.h"
#include "kvstore/rdma/rdma_parts.h"
#include "kvstore/rdma/rdma_queue.h"

namespace cairn::kv {

// Loop thread only. Whoever owns it closes it, and awaits its tasks, before it is destroyed.
class RdmaConnection final : public RdmaCmHandler {
 public:
  // Of the caller; and of the callee, which takes over the id of a request.
  RdmaConnection(const RdmaParts& parts, uint64_t id);
  RdmaConnection(const RdmaParts& parts, uint64_t id, rdma_cm_id& requested,
                 const rdma_conn_param& asked);
  ~RdmaConnection() override;

  // Returns when there is a connection, or the connection manager says that there is none, or after
  // Close. `source` may be null: the kernel's routes choose the port then.
  Task<Status> Connect(const SocketAddress* source, SocketAddress peer);
  Task<Status> Accept();

  // The hello, before anything else: as the one that connected, and as the other.
  Task<HelloOutcome> Introduce(NodeId callee, ConnectionRole role);
  Task<HelloOutcome> Admit();

  // Ends everything above soon. Memory of this node is not in the peer's reach any more.
  void Close();
  bool closing() const { return closing_ || (queue_ != nullptr && queue_->closing()); }

  uint64_t id() const { return id_; }
  // Why the device closed it; empty when it did not.
  std::string fault() const { return queue_ == nullptr ? std::string() : queue_->fault(); }
  // After Connect or Accept has found a device.
  RdmaQueue& queue() { return *queue_; }
  // Valid after the hello; before, whom it claims to be.
  NodeId peer() const { return peer_; }
  ConnectionRole role() const { return role_; }

  void OnCmEvent(rdma_cm_event_type event, int status) override;

 private:
  struct CmEvent {
    rdma_cm_event_type kind;
    int status;
  };
  Status Failed(const char* what) const;
  // Waits for the connection manager's next word: the one that is wanted, or why not.
  Task<Status> Expect(rdma_cm_event_type wanted, const char* what);
  // Once the id has a device.
  Status OpenQueue();
  rdma_conn_param Parameters() const;
  Task<bool> Say(ByteSpan message);
  Task<Received> Hear(MutableByteSpan message);

  const RdmaParts parts_;
  const uint64_t id_;
  rdma_cm_id* cm_ = nullptr;
  rdma_conn_param asked_{};  // Of the callee: what the caller would have.
  std::unique_ptr<RdmaQueue> queue_;
  std::deque<CmEvent> events_;
  std::optional<Event> wake_;
  bool closing_ = false;
  NodeId peer_;
  ConnectionRole role_ = ConnectionRole::kControl;
};

}  // namespace cairn::kv
