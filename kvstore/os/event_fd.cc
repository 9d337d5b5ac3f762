// An eventfd whose value nobody needs.
#include "kvstore/os/event_fd.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

namespace cairn::kv {

Result<std::unique_ptr<EventFd>> EventFd::Create() {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) {
    return Status(Code::kUnavailable, std::string("no eventfd: ") + std::strerror(errno));
  }
  return std::unique_ptr<EventFd>(new EventFd(fd));
}

EventFd::~EventFd() { close(fd_); }

void EventFd::Signal() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof(one));
}

void EventFd::Drain() {
  uint64_t value = 0;
  [[maybe_unused]] const ssize_t taken = read(fd_, &value, sizeof(value));
}

bool EventFd::Wait(Nanos limit) const {
  pollfd wait{.fd = fd_, .events = POLLIN, .revents = 0};
  const timespec left{.tv_sec = limit.value / 1'000'000'000,
                      .tv_nsec = limit.value % 1'000'000'000};
  return ppoll(&wait, 1, limit < Nanos{0} ? nullptr : &left, nullptr) > 0;
}

}  // namespace cairn::kv
