// The engine on io_uring: one ring for everything.
#pragma once

#include <liburing.h>

#include <deque>
#include <memory>

#include "kvstore/os/poller.h"

namespace cairn::kv {

class UringPoller final : public Poller {
 public:
  // Null, and why (an errno), when the kernel refuses; `event_fd` is then still the caller's.
  static std::unique_ptr<Poller> Create(Loop& loop, const PollerOptions& options, int event_fd,
                                        int& error);
  ~UringPoller() override;

  void Close(int socket) override;
  std::string_view engine_name() const override { return "io_uring"; }

 protected:
  void Start(Operation& operation) override;
  bool Harvest() override;
  void SleepUntil(Instant until) override;

 private:
  UringPoller(Loop& loop, const PollerOptions& options, int event_fd, const io_uring& ring);

  void Submit();
  void Prepare(io_uring_sqe& entry, Operation& operation);
  void WatchEventFd();
  bool TakeCompletions();

  io_uring ring_;
  std::deque<Operation*> waiting_;  // For a place in the submission queue.
  uint64_t event_count_ = 0;        // Read from the event fd.
  bool watching_event_fd_ = false;
};

}  // namespace cairn::kv
