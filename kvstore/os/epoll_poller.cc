// Tries each socket call at once, and again when epoll says so.
#include "kvstore/os/epoll_poller.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "kvstore/base/check.h"

namespace cairn::kv {
namespace {

int64_t ResultOf(ssize_t returned) { return returned < 0 ? -int64_t{errno} : returned; }

int64_t RunOnDisk(const Operation& operation) {
  const auto offset = static_cast<off_t>(operation.offset);
  switch (operation.kind) {
    case Operation::Kind::kReadAt:
      return ResultOf(pread(operation.fd, operation.memory, operation.size, offset));
    case Operation::Kind::kWriteAt:
      return ResultOf(pwrite(operation.fd, operation.memory, operation.size, offset));
    default:
      return ResultOf(fdatasync(operation.fd));
  }
}

// `again` is false on the first try: a connect is begun once, and asked about afterwards.
int64_t TryOnSocket(const Operation& operation, bool again) {
  switch (operation.kind) {
    case Operation::Kind::kReceive:
      return ResultOf(recv(operation.fd, operation.memory, operation.size, MSG_DONTWAIT));
    case Operation::Kind::kReceiveMessage:
      return ResultOf(recvmsg(operation.fd, static_cast<msghdr*>(operation.memory),
                              MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
    case Operation::Kind::kSend:
      return ResultOf(sendmsg(operation.fd, static_cast<msghdr*>(operation.memory),
                              MSG_DONTWAIT | MSG_NOSIGNAL));
    case Operation::Kind::kAccept:
      return ResultOf(accept4(operation.fd, nullptr, nullptr, SOCK_CLOEXEC));
    case Operation::Kind::kReadable: {
      pollfd asked{.fd = operation.fd, .events = POLLIN, .revents = 0};
      const int64_t ready = ResultOf(poll(&asked, 1, 0));
      return ready == 0 ? -EAGAIN : std::min<int64_t>(ready, 0);
    }
    default:
      break;
  }
  if (!again) {
    const int64_t begun = ResultOf(
        connect(operation.fd, static_cast<sockaddr*>(operation.memory), operation.size));
    return begun == -EINPROGRESS ? -EAGAIN : begun;
  }
  int error = 0;
  socklen_t size = sizeof(error);
  KV_CHECK(getsockopt(operation.fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0);
  return -int64_t{error};
}

bool IsReader(const Operation& operation) {
  return operation.kind == Operation::Kind::kReceive ||
         operation.kind == Operation::Kind::kReceiveMessage ||
         operation.kind == Operation::Kind::kReadable ||
         operation.kind == Operation::Kind::kAccept;
}

}  // namespace

Result<std::unique_ptr<Poller>> EpollPoller::Create(Loop& loop, const PollerOptions& options,
                                                    int event_fd) {
  const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  epoll_event watch{};
  watch.events = EPOLLIN;
  watch.data.fd = event_fd;
  if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, event_fd, &watch) != 0) {
    const std::string reason = std::strerror(errno);
    if (epoll_fd >= 0) close(epoll_fd);
    close(event_fd);
    return Status(Code::kUnavailable, "epoll is not to be had: " + reason);
  }
  return std::unique_ptr<Poller>(new EpollPoller(loop, options, event_fd, epoll_fd));
}

EpollPoller::EpollPoller(Loop& loop, const PollerOptions& options, int event_fd, int epoll_fd)
    : Poller(loop, options, event_fd), epoll_fd_(epoll_fd), pool_(options.disk_threads) {}

EpollPoller::~EpollPoller() { close(epoll_fd_); }

void EpollPoller::Close(int socket) {
  sockets_.erase(socket);
  close(socket);
}

void EpollPoller::Start(Operation& operation) {
  if (operation.is_disk()) {
    StartOnDisk(operation);
  } else {
    StartOnSocket(operation);
  }
}

void EpollPoller::StartOnDisk(Operation& operation) {
  pool_.Run([this, &operation] {
    const int64_t result = RunOnDisk(operation);
    loop().Post([this, &operation, result] { Complete(operation, result); });
  });
}

void EpollPoller::StartOnSocket(Operation& operation) {
  // These two have no flag of their own against blocking.
  if (operation.kind == Operation::Kind::kAccept || operation.kind == Operation::Kind::kConnect) {
    const int flags = fcntl(operation.fd, F_GETFL);
    fcntl(operation.fd, F_SETFL, flags | O_NONBLOCK);
  }
  const int64_t result = TryOnSocket(operation, false);
  if (result != -EAGAIN) {
    Complete(operation, result);
    return;
  }
  Socket& socket = sockets_[operation.fd];
  Operation*& place = IsReader(operation) ? socket.reader : socket.writer;
  KV_CHECK(place == nullptr);
  place = &operation;
  Watch(operation.fd, socket);
}

bool EpollPoller::Harvest() {
  std::array<epoll_event, 64> events;
  bool any = false;
  const int count = epoll_wait(epoll_fd_, events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (event.data.fd == event_fd_) {
      uint64_t value = 0;
      [[maybe_unused]] const ssize_t taken = read(event_fd_, &value, sizeof(value));
    } else {
      OnReady(event.data.fd, event.events);
      any = true;
    }
  }
  return any;
}

void EpollPoller::SleepUntil(Instant until) {
  pollfd wait{.fd = epoll_fd_, .events = POLLIN, .revents = 0};
  timespec limit{};
  if (until != kNever) {
    const int64_t left = std::max<int64_t>(0, (until - Now()).value);
    limit.tv_sec = left / 1'000'000'000;
    limit.tv_nsec = left % 1'000'000'000;
  }
  if (ppoll(&wait, 1, until == kNever ? nullptr : &limit, nullptr) > 0) Harvest();
}

void EpollPoller::OnReady(int fd, uint32_t events) {
  const auto found = sockets_.find(fd);
  if (found == sockets_.end()) return;
  Socket& socket = found->second;
  const bool broken = (events & (EPOLLERR | EPOLLHUP)) != 0;
  for (Operation** place : {&socket.reader, &socket.writer}) {
    const uint32_t wanted = place == &socket.reader ? EPOLLIN : EPOLLOUT;
    if (*place == nullptr || (!broken && (events & wanted) == 0)) continue;
    int64_t result = TryOnSocket(**place, true);
    // A unix listener that was shut down says so to nobody but epoll.
    const bool hung_up = (events & EPOLLHUP) != 0 && (*place)->kind == Operation::Kind::kAccept;
    if (result == -EAGAIN && hung_up) result = -EINVAL;
    if (result == -EAGAIN) continue;
    Operation& operation = **place;
    *place = nullptr;
    Complete(operation, result);
  }
  Watch(fd, socket);
}

void EpollPoller::Watch(int fd, Socket& socket) {
  const uint32_t wanted = (socket.reader != nullptr ? uint32_t{EPOLLIN} : 0) |
                          (socket.writer != nullptr ? uint32_t{EPOLLOUT} : 0);
  if (wanted == socket.watched) return;
  epoll_event watch{};
  watch.events = wanted;
  watch.data.fd = fd;
  // Out of the set altogether when nobody waits: a hang-up is reported even to an empty mask.
  const int change = socket.watched == 0 ? EPOLL_CTL_ADD
                     : wanted == 0       ? EPOLL_CTL_DEL
                                         : EPOLL_CTL_MOD;
  KV_CHECK(epoll_ctl(epoll_fd_, change, fd, &watch) == 0);
  socket.watched = wanted;
}

}  // namespace cairn::kv
