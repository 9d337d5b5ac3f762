// Submits in batches, one system call for starting and waiting.
#include "kvstore/os/uring_poller.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "kvstore/base/check.h"

namespace cairn::kv {
namespace {

constexpr unsigned kEntries = 1024;

int OpenRing(io_uring& ring) {
  // Completions wait for our next system call instead of interrupting us; the flag tells of them.
  const int modern = io_uring_queue_init(kEntries, &ring,
                                         IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
                                             IORING_SETUP_CLAMP);
  if (modern != -EINVAL) return modern;
  return io_uring_queue_init(kEntries, &ring, IORING_SETUP_CLAMP);
}

// Some sandboxes let rings be made and forbid their use. 0, or what came instead of a completion.
int TryRing(io_uring& ring) {
  io_uring_prep_nop(io_uring_get_sqe(&ring));
  int submitted = 0;
  do {
    submitted = io_uring_submit_and_wait(&ring, 1);
  } while (submitted == -EINTR);
  if (submitted < 0) return -submitted;
  io_uring_cqe* entry = nullptr;
  const int peeked = io_uring_peek_cqe(&ring, &entry);
  if (peeked != 0) return -peeked;
  io_uring_cqe_seen(&ring, entry);
  return 0;
}

}  // namespace

std::unique_ptr<Poller> UringPoller::Create(Loop& loop, const PollerOptions& options, int event_fd,
                                            int& error) {
  io_uring ring;
  error = -OpenRing(ring);
  if (error != 0) return nullptr;
  // Waiting with a time limit and never losing a completion: kernel 5.11.
  constexpr unsigned kNeeded = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP;
  if ((ring.features & kNeeded) != kNeeded) {
    io_uring_queue_exit(&ring);
    error = ENOSYS;
    return nullptr;
  }
  error = TryRing(ring);
  if (error != 0) {
    io_uring_queue_exit(&ring);
    return nullptr;
  }
  return std::unique_ptr<Poller>(new UringPoller(loop, options, event_fd, ring));
}

UringPoller::UringPoller(Loop& loop, const PollerOptions& options, int event_fd,
                         const io_uring& ring)
    : Poller(loop, options, event_fd), ring_(ring) {}

UringPoller::~UringPoller() {
  // The kernel may still read the event fd into this object: end that before the memory goes.
  if (watching_event_fd_) {
    const uint64_t one = 1;
    KV_CHECK(write(event_fd_, &one, sizeof(one)) == sizeof(one));
    while (watching_event_fd_) {
      io_uring_cqe* entry = nullptr;
      const int waited = io_uring_wait_cqe(&ring_, &entry);
      KV_CHECK(waited == 0 || waited == -EINTR);
      TakeCompletions();
    }
  }
  io_uring_queue_exit(&ring_);
}

void UringPoller::Close(int socket) { close(socket); }

void UringPoller::Start(Operation& operation) {
  io_uring_sqe* entry = waiting_.empty() ? io_uring_get_sqe(&ring_) : nullptr;
  if (entry == nullptr) {
    waiting_.push_back(&operation);
    return;
  }
  Prepare(*entry, operation);
}

bool UringPoller::Harvest() {
  WatchEventFd();
  Submit();
  return TakeCompletions();
}

void UringPoller::SleepUntil(Instant until) {
  __kernel_timespec limit{};
  __kernel_timespec* limit_or_none = nullptr;
  if (until != kNever) {
    const int64_t left = std::max<int64_t>(0, (until - Now()).value);
    limit.tv_sec = left / 1'000'000'000;
    limit.tv_nsec = left % 1'000'000'000;
    limit_or_none = &limit;
  }
  io_uring_cqe* entry = nullptr;
  const int waited = io_uring_submit_and_wait_timeout(&ring_, &entry, 1, limit_or_none, nullptr);
  KV_CHECK(waited >= 0 || waited == -ETIME || waited == -EINTR || waited == -EAGAIN ||
           waited == -EBUSY);
  TakeCompletions();
}

void UringPoller::Submit() {
  const int submitted = io_uring_submit(&ring_);
  KV_CHECK(submitted >= 0 || submitted == -EINTR || submitted == -EAGAIN || submitted == -EBUSY);
  while (!waiting_.empty()) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) {
      if (io_uring_submit(&ring_) <= 0) return;  // Completions must be taken first.
      continue;
    }
    Prepare(*entry, *waiting_.front());
    waiting_.pop_front();
  }
  if (io_uring_sq_ready(&ring_) > 0) io_uring_submit(&ring_);
}

void UringPoller::Prepare(io_uring_sqe& entry, Operation& operation) {
  const int fd = operation.fd;
  switch (operation.kind) {
    case Operation::Kind::kReadAt:
      io_uring_prep_read(&entry, fd, operation.memory, operation.size, operation.offset);
      break;
    case Operation::Kind::kWriteAt:
      io_uring_prep_write(&entry, fd, operation.memory, operation.size, operation.offset);
      break;
    case Operation::Kind::kSyncData:
      io_uring_prep_fsync(&entry, fd, IORING_FSYNC_DATASYNC);
      break;
    case Operation::Kind::kReceive:
      io_uring_prep_recv(&entry, fd, operation.memory, operation.size, 0);
      break;
    case Operation::Kind::kReceiveMessage:
      io_uring_prep_recvmsg(&entry, fd, static_cast<msghdr*>(operation.memory), MSG_CMSG_CLOEXEC);
      break;
    case Operation::Kind::kSend:
      io_uring_prep_sendmsg(&entry, fd, static_cast<msghdr*>(operation.memory), MSG_NOSIGNAL);
      break;
    case Operation::Kind::kAccept:
      io_uring_prep_accept(&entry, fd, nullptr, nullptr, SOCK_CLOEXEC);
      break;
    case Operation::Kind::kReadable:
      io_uring_prep_poll_add(&entry, fd, POLLIN);
      break;
    case Operation::Kind::kConnect:
      io_uring_prep_connect(&entry, fd, static_cast<sockaddr*>(operation.memory), operation.size);
      break;
  }
  io_uring_sqe_set_data(&entry, &operation);
}

void UringPoller::WatchEventFd() {
  if (watching_event_fd_) return;
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  if (entry == nullptr) {
    io_uring_submit(&ring_);
    entry = io_uring_get_sqe(&ring_);
    KV_CHECK(entry != nullptr);
  }
  io_uring_prep_read(entry, event_fd_, &event_count_, sizeof(event_count_), 0);
  io_uring_sqe_set_data(entry, nullptr);
  watching_event_fd_ = true;
}

bool UringPoller::TakeCompletions() {
  std::array<io_uring_cqe*, 64> entries;
  bool any = false;
  for (;;) {
    const unsigned count = io_uring_peek_batch_cqe(&ring_, entries.data(), entries.size());
    for (unsigned i = 0; i < count; ++i) {
      auto* operation = static_cast<Operation*>(io_uring_cqe_get_data(entries[i]));
      if (operation == nullptr) {
        watching_event_fd_ = false;
      } else {
        // Of kReadable, which events came.
        const bool polled = operation->kind == Operation::Kind::kReadable;
        Complete(*operation, polled ? std::min(entries[i]->res, 0) : entries[i]->res);
      }
    }
    io_uring_cq_advance(&ring_, count);
    any = any || count > 0;
    if (count < entries.size()) return any;
  }
}

}  // namespace cairn::kv
