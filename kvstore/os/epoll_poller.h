// The engine for where io_uring is forbidden: epoll for sockets, threads for disks.
#pragma once

#include <sys/epoll.h>

#include <memory>
#include <unordered_map>

#include "kvstore/os/poller.h"
#include "kvstore/os/thread_pool.h"

namespace cairn::kv {

class EpollPoller final : public Poller {
 public:
  // Takes `event_fd` over.
  static Result<std::unique_ptr<Poller>> Create(Loop& loop, const PollerOptions& options,
                                                int event_fd);
  ~EpollPoller() override;

  void Close(int socket) override;
  std::string_view engine_name() const override { return "epoll"; }

 protected:
  void Start(Operation& operation) override;
  bool Harvest() override;
  void SleepUntil(Instant until) override;

 private:
  struct Socket {
    Operation* reader = nullptr;  // Receive or accept.
    Operation* writer = nullptr;  // Send or connect.
    uint32_t watched = 0;
  };

  EpollPoller(Loop& loop, const PollerOptions& options, int event_fd, int epoll_fd);

  void StartOnDisk(Operation& operation);
  void StartOnSocket(Operation& operation);
  void OnReady(int fd, uint32_t events);
  void Watch(int fd, Socket& socket);

  const int epoll_fd_;
  std::unordered_map<int, Socket> sockets_;  // Never iterated.
  ThreadPool pool_;
};

}  // namespace cairn::kv
