// A descriptor that becomes readable when something has happened: for threads that poll elsewhere.
#pragma once

#include <memory>

#include "kvstore/base/result.h"
#include "kvstore/base/time.h"

namespace cairn::kv {

// Thread-safe.
class EventFd {
 public:
  // kUnavailable when the process has too many open.
  static Result<std::unique_ptr<EventFd>> Create();
  ~EventFd();
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;

  // Readable while it has been signalled and not drained. Do not read, write or close it.
  int fd() const { return fd_; }
  void Signal();
  void Drain();
  // Sleeps until it is readable, at most for `limit` (negative: no limit). False: not readable.
  bool Wait(Nanos limit) const;

 private:
  explicit EventFd(int fd) : fd_(fd) {}
  const int fd_;
};

}  // namespace cairn::kv
