// Brings what RDMA devices and the connection manager report into the loop.
#pragma once

#include <rdma/rdma_cma.h>

#include <functional>
#include <map>
#include <memory>

#include "kvstore/async/gate.h"
#include "kvstore/base/result.h"
#include "kvstore/os/event_fd.h"
#include "kvstore/os/poller.h"

namespace cairn::kv {

// What the connection manager says of one rdma_cm_id, whose context this is.
class RdmaCmHandler {
 public:
  virtual ~RdmaCmHandler() = default;
  virtual void OnCmEvent(rdma_cm_event_type event, int status) = 0;
};

// Loop thread only.
class RdmaEvents {
 public:
  // kUnavailable where the kernel has no connection manager (module rdma_ucm).
  static Result<std::unique_ptr<RdmaEvents>> Create(Poller& poller);
  ~RdmaEvents();
  RdmaEvents(const RdmaEvents&) = delete;
  RdmaEvents& operator=(const RdmaEvents&) = delete;

  // For rdma_create_id. Events of ids whose context is null are dropped.
  rdma_event_channel* channel() const { return channel_; }
  // Gets the id of each request to a listener, and gives it a context at once, or destroys it.
  using OnRequest = std::function<void(rdma_cm_id& id, const rdma_conn_param& asked)>;
  void SetOnRequest(OnRequest on_request) { on_request_ = std::move(on_request); }

  // Calls `on_readable` whenever the descriptor is readable, until Stop. It does not block.
  void Watch(int fd, std::function<void()> on_readable);
  Task<void> Stop();

 private:
  RdmaEvents(Poller& poller, rdma_event_channel* channel, int epoll_fd,
             std::unique_ptr<EventFd> wake);
  Task<void> Run();
  void TakeCmEvents();

  Poller& poller_;
  rdma_event_channel* const channel_;
  const int epoll_fd_;  // Of the channel and all that is watched.
  const std::unique_ptr<EventFd> wake_;
  std::map<int, std::function<void()>> watched_;
  OnRequest on_request_;
  bool stopping_ = false;
  Gate gate_;
};

}  // namespace cairn::kv
