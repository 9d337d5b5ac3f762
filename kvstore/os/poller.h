// Finds out what the kernel has finished: disk, sockets and timers of one loop, in one wait.
//
//   while (!stopping) { loop.RunReady(); poller.Wait(); }     // or simply poller.Run(stop)
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "kvstore/async/loop.h"
#include "kvstore/async/task.h"
#include "kvstore/async/timer_queue.h"
#include "kvstore/base/log.h"
#include "kvstore/base/result.h"
#include "kvstore/base/time.h"

namespace cairn::kv {

class Poller;

// One system call on its way. co_await it for what the call returned, or -errno.
class Operation {
 public:
  enum class Kind : uint8_t {
    kReadAt,
    kWriteAt,
    kSyncData,
    kReceive,
    kReceiveMessage,
    kSend,
    kAccept,
    kReadable,
    kConnect
  };

  Operation(Poller& owner, Kind call, int file, void* buffer, uint32_t buffer_size, uint64_t at)
      : poller(owner), kind(call), fd(file), memory(buffer), size(buffer_size), offset(at) {}

  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> suspended);
  int64_t await_resume() const { return result; }
  bool is_disk() const { return kind <= Kind::kSyncData; }

  // For the poller. `memory` is the buffer, the msghdr (messages) or the sockaddr (kConnect).
  Poller& poller;
  Kind kind;
  int fd;
  void* memory;
  uint32_t size;
  uint64_t offset;
  int64_t result = 0;
  std::coroutine_handle<> waiter;
};

enum class PollerEngine {
  kAuto,   // io_uring, and where the kernel or a container forbids it epoll; the log says which.
  kUring,  // Or fail.
  kEpoll,  // epoll for sockets, threads for disks.
};

// "auto", "io_uring" or "epoll", as configuration and command lines write it. kInvalid otherwise.
Result<PollerEngine> ParsePollerEngine(std::string_view name);

struct PollerOptions {
  PollerEngine engine = PollerEngine::kAuto;
  // How long Wait may spin before it sleeps while something fast is in flight. A sleep costs a
  // wake-up of tens of microseconds; spinning costs the core.
  Nanos spin_max = Micros(50);
  uint32_t disk_threads = 8;  // Of the epoll engine.
};

// Belongs to one thread, the loop's; only Loop::Post may be called from others. Sockets given to it
// are blocking ones, and shutting one down ends its operations. The destructor checks that no
// operation is in flight.
class Poller {
 public:
  // `loop` and `log` must outlive it. kUnavailable when the asked-for engine is not to be had.
  static Result<std::unique_ptr<Poller>> Create(Loop& loop, Log& log, const PollerOptions& options);
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;
  virtual ~Poller();

  // Starts what was asked for, then waits until something has happened: a completion, a timer, a
  // call posted to the loop. May return without any.
  void Wait();
  // Runs the loop until `stop` is set; whoever sets it then posts anything to the loop.
  void Run(const std::atomic<bool>& stop);
  void RunUntil(const std::function<bool()>& done);
  void RunUntil(const Event& event);
  // Runs the loop until `task` is done. For main functions and tests.
  template <typename T>
  T Await(Task<T> task) {
    RunUntil([&task] { return task.done(); });
    return task.Take();
  }

  Operation ReadAt(int fd, uint8_t* into, uint32_t size, uint64_t offset) {
    return {*this, Operation::Kind::kReadAt, fd, into, size, offset};
  }
  Operation WriteAt(int fd, const uint8_t* from, uint32_t size, uint64_t offset) {
    return {*this, Operation::Kind::kWriteAt, fd, const_cast<uint8_t*>(from), size, offset};
  }
  Operation SyncData(int fd) { return {*this, Operation::Kind::kSyncData, fd, nullptr, 0, 0}; }
  Operation Receive(int socket, uint8_t* into, uint32_t size) {
    return {*this, Operation::Kind::kReceive, socket, into, size, 0};
  }
  // As recvmsg: scattered, and with the descriptors that a unix socket brings (closed on exec).
  Operation ReceiveMessage(int socket, msghdr& message) {
    return {*this, Operation::Kind::kReceiveMessage, socket, &message, 0, 0};
  }
  Operation Send(int socket, msghdr& message) {
    return {*this, Operation::Kind::kSend, socket, &message, 0, 0};
  }
  Operation Accept(int listener) {
    return {*this, Operation::Kind::kAccept, listener, nullptr, 0, 0};
  }
  Operation Connect(int socket, sockaddr& address, uint32_t size) {
    return {*this, Operation::Kind::kConnect, socket, &address, size, 0};
  }
  // Until a descriptor of any kind has something to be read; 0, or -errno. Nothing else ends it:
  // give an epoll set with an event fd in it.
  Operation Readable(int fd) { return {*this, Operation::Kind::kReadable, fd, nullptr, 0, 0}; }
  // Of a descriptor that no operation uses any more.
  virtual void Close(int socket) = 0;

  virtual std::string_view engine_name() const = 0;  // "io_uring", "epoll"
  Loop& loop() { return loop_; }
  TimerQueue& timers() { return timers_; }
  static Instant Now();
  // While more was begun than ended, Wait spins before it sleeps: an answer will come soon.
  void BeginSoon() { ++soon_; }
  void EndSoon() { --soon_; }
  // The same for a span of time from now on: more of what just came is likely.
  void ExpectMore(Nanos span) { expect_until_ = Now() + span; }
  uint64_t in_flight() const { return in_flight_; }
  uint64_t sleeps() const { return sleeps_; }

 protected:
  Poller(Loop& loop, const PollerOptions& options, int event_fd);

  friend class Operation;
  virtual void Start(Operation& operation) = 0;
  // Submits and takes what is finished, without waiting. True when something was.
  virtual bool Harvest() = 0;
  // The same, but waits for something, for a write to the event fd, or for `until`.
  virtual void SleepUntil(Instant until) = 0;
  void Complete(Operation& operation, int64_t result);

  const int event_fd_;

 private:
  void Begin(Operation& operation);
  // True when something happened within the time that spinning has been worth lately.
  bool Spin();

  Loop& loop_;
  const PollerOptions options_;
  TimerQueue timers_;
  Nanos spin_;
  uint32_t soon_ = 0;
  Instant expect_until_;
  uint64_t in_flight_ = 0;
  uint64_t sleeps_ = 0;
  std::atomic<bool> sleeping_{false};  // Posters read it, to spare the system call.
};

}  // namespace cairn::kv
