// What both engines share: timers, spinning, and waking up for posted calls.
#include "kvstore/os/poller.h"

#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "kvstore/os/epoll_poller.h"
#include "kvstore/os/uring_poller.h"

namespace cairn::kv {
namespace {

constexpr Nanos kSpinMin = Micros(2);

}  // namespace

void Operation::await_suspend(std::coroutine_handle<> suspended) {
  waiter = suspended;
  poller.Begin(*this);
}

Result<PollerEngine> ParsePollerEngine(std::string_view name) {
  if (name == "auto") return PollerEngine::kAuto;
  if (name == "io_uring") return PollerEngine::kUring;
  if (name == "epoll") return PollerEngine::kEpoll;
  return Status(Code::kInvalid, std::string("poller '")
                                    .append(name)
                                    .append("' is unknown; take auto, io_uring or epoll"));
}

Result<std::unique_ptr<Poller>> Poller::Create(Loop& loop, Log& log, const PollerOptions& options) {
  const int event_fd = eventfd(0, EFD_CLOEXEC);
  if (event_fd < 0) {
    return Status(Code::kUnavailable, std::string("no eventfd: ") + std::strerror(errno));
  }
  if (options.engine != PollerEngine::kEpoll) {
    int error = 0;
    std::unique_ptr<Poller> uring = UringPoller::Create(loop, options, event_fd, error);
    if (uring != nullptr) {
      log.Info("disks and sockets use io_uring");
      return uring;
    }
    const std::string reason = std::string("io_uring is not to be had: ") + std::strerror(error);
    if (options.engine == PollerEngine::kUring) {
      close(event_fd);
      return Status(Code::kUnavailable, reason);
    }
    log.Warning(reason + "; disks use threads and sockets use epoll instead, which is slower");
  } else {
    log.Info("io_uring is switched off: disks use threads and sockets use epoll");
  }
  return EpollPoller::Create(loop, options, event_fd);
}

Poller::Poller(Loop& loop, const PollerOptions& options, int event_fd)
    : event_fd_(event_fd), loop_(loop), options_(options), spin_(options.spin_max) {
  loop_.SetNotify([this] {
    // Wait sets the flag before it looks for posted calls a last time, so none is missed.
    if (!sleeping_.exchange(false)) return;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(event_fd_, &one, sizeof(one));
  });
}

Poller::~Poller() {
  KV_CHECK(in_flight_ == 0);
  loop_.SetNotify(nullptr);
  close(event_fd_);
}

void Poller::Wait() {
  const bool completed = Harvest();
  timers_.RunDue(Now());
  if (completed || loop_.HasWork()) return;
  if ((soon_ > 0 || Now() < expect_until_) && Spin()) return;
  sleeping_ = true;
  if (!loop_.HasWork()) {
    ++sleeps_;
    SleepUntil(timers_.next_at());
  }
  sleeping_ = false;
  timers_.RunDue(Now());
}

bool Poller::Spin() {
  if (options_.spin_max <= Nanos{0}) return false;
  const Instant until = std::min(Now() + spin_, timers_.next_at());
  while (Now() < until) {
    if (Harvest() || loop_.HasWork()) {
      spin_ = std::min(options_.spin_max, Nanos{spin_.value * 2});
      return true;
    }
  }
  spin_ = std::max(kSpinMin, Nanos{spin_.value / 2});
  return false;
}

void Poller::Run(const std::atomic<bool>& stop) {
  RunUntil([&stop] { return stop.load(); });
}

void Poller::RunUntil(const Event& event) {
  RunUntil([&event] { return event.is_set(); });
}

void Poller::RunUntil(const std::function<bool()>& done) {
  loop_.RunReady();
  while (!done()) {
    Wait();
    loop_.RunReady();
  }
}

Instant Poller::Now() {
  timespec now;
  KV_CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  return {int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec};
}

void Poller::Begin(Operation& operation) {
  ++in_flight_;
  if (operation.is_disk()) BeginSoon();
  Start(operation);
}

void Poller::Complete(Operation& operation, int64_t result) {
  --in_flight_;
  if (operation.is_disk()) EndSoon();
  operation.result = result;
  loop_.Wake(operation.waiter);
}

}  // namespace cairn::kv
