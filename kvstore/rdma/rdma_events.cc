// One epoll set for all descriptors, so that one operation of the poller waits for them.
#include "kvstore/rdma/rdma_events.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace cairn::kv {

Result<std::unique_ptr<RdmaEvents>> RdmaEvents::Create(Poller& poller) {
  rdma_event_channel* const channel = rdma_create_event_channel();
  if (channel == nullptr) {
    return Status(Code::kUnavailable, std::string("no RDMA connection manager (is the kernel "
                                                  "module rdma_ucm loaded?): ") +
                                          std::strerror(errno));
  }
  const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  Result<std::unique_ptr<EventFd>> wake = EventFd::Create();
  if (epoll_fd < 0 || !wake.ok()) {
    rdma_destroy_event_channel(channel);
    if (epoll_fd >= 0) close(epoll_fd);
    return Status(Code::kUnavailable, "too many files are open");
  }
  return std::unique_ptr<RdmaEvents>(
      new RdmaEvents(poller, channel, epoll_fd, std::move(wake).value()));
}

RdmaEvents::RdmaEvents(Poller& poller, rdma_event_channel* channel, int epoll_fd,
                       std::unique_ptr<EventFd> wake)
    : poller_(poller), channel_(channel), epoll_fd_(epoll_fd), wake_(std::move(wake)),
      gate_(poller.loop()) {
  fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  Watch(channel_->fd, [this] { TakeCmEvents(); });
  Watch(wake_->fd(), [this] { wake_->Drain(); });
  gate_.Hold(Run());
}

RdmaEvents::~RdmaEvents() {
  close(epoll_fd_);
  rdma_destroy_event_channel(channel_);
}

void RdmaEvents::Watch(int fd, std::function<void()> on_readable) {
  epoll_event watch{};
  watch.events = EPOLLIN;
  watch.data.fd = fd;
  KV_CHECK(epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &watch) == 0);
  watched_[fd] = std::move(on_readable);
}

Task<void> RdmaEvents::Stop() {
  stopping_ = true;
  wake_->Signal();
  co_await gate_.Close();
}

Task<void> RdmaEvents::Run() {
  while (!stopping_) {
    co_await poller_.Readable(epoll_fd_);
    std::array<epoll_event, 16> events;
    const int count = epoll_wait(epoll_fd_, events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) watched_.at(events[static_cast<size_t>(i)].data.fd)();
  }
}

void RdmaEvents::TakeCmEvents() {
  rdma_cm_event* event = nullptr;
  while (rdma_get_cm_event(channel_, &event) == 0) {
    const rdma_cm_event_type kind = event->event;
    const int status = event->status;
    rdma_cm_id* const id = event->id;
    const rdma_conn_param asked = event->param.conn;
    // Before the id may be destroyed: that waits for it.
    rdma_ack_cm_event(event);
    if (kind == RDMA_CM_EVENT_CONNECT_REQUEST) {
      on_request_(*id, asked);
    } else if (id->context != nullptr) {
      static_cast<RdmaCmHandler*>(id->context)->OnCmEvent(kind, status);
    }
  }
}

}  // namespace cairn::kv
