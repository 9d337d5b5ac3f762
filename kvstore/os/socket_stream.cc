// A buffer in front of the socket for what is small; scattered reads and gathered writes for the
// rest.
#include "kvstore/os/socket_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace cairn::kv {
namespace {

constexpr size_t kReceiveBufferSize = 64 * kKiB;
constexpr size_t kPiecesMax = 1000;         // Of one system call; the kernel takes 1,024.
constexpr size_t kSendSizeMax = 1 * kMiB;   // Of one system call: progress stays visible.
constexpr size_t kDescriptorsMax = 4;       // That came and were not taken.
constexpr size_t kSkipSize = 64 * kKiB;

// Drops the first `size` bytes from `pieces`.
void Advance(std::vector<iovec>& pieces, size_t size) {
  size_t whole = 0;
  while (whole < pieces.size() && size >= pieces[whole].iov_len) {
    size -= pieces[whole].iov_len;
    ++whole;
  }
  pieces.erase(pieces.begin(), pieces.begin() + static_cast<ptrdiff_t>(whole));
  if (size > 0) {
    pieces.front().iov_base = static_cast<uint8_t*>(pieces.front().iov_base) + size;
    pieces.front().iov_len -= size;
  }
}

}  // namespace

// One frame on its way; lives in the task that sends it.
struct SocketStream::Sending {
  Sending(Loop& loop, Outgoing what) : outgoing(std::move(what)), done(loop) {
    size = outgoing.frame.size();
    for (const ByteSpan part : outgoing.payload) size += part.size();
  }
  Outgoing outgoing;
  size_t size = 0;
  size_t sent = 0;
  OneShot<bool> done;
};

SocketStream::SocketStream(Poller& poller, int socket)
    : poller_(poller),
      socket_(socket),
      buffer_(kReceiveBufferSize),
      last_heard_(Poller::Now()) {
  const int on = 1;
  // Fails on a unix socket, which has no such delay.
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

SocketStream::~SocketStream() {
  KV_CHECK(queue_.empty());
  for (const int descriptor : descriptors_) close(descriptor);
  poller_.Close(socket_);
}

void SocketStream::Close() {
  if (closing_) return;
  closing_ = true;
  shutdown(socket_, SHUT_RDWR);
  if (wake_.has_value()) wake_->Set();
}

// --- TLS ----------------------------------------------------------------------------------------

Task<Status> SocketStream::StartTls(std::unique_ptr<TlsSession> tls) {
  KV_CHECK(tls_ == nullptr && begin_ == end_);
  tls_ = std::move(tls);
  sealed_received_ = Bytes(kReceiveBufferSize);
  for (;;) {
    const Status status = tls_->Handshake();
    const bool sent = co_await SendDrained();
    if (!status.ok()) co_return status;
    if (tls_->established()) co_return Status();
    bool fed = false;
    if (sent) fed = co_await FeedTls();
    if (!fed) {
      co_return Status(Code::kUnavailable,
                       "the connection ended in the TLS handshake: does the other side speak TLS?");
    }
  }
}

Task<bool> SocketStream::FeedTls() {
  int64_t got = 0;
  do {
    if (closing_) co_return false;
    if (inside_frame_) receiving_since_ = Poller::Now();
    got = co_await poller_.Receive(socket_, sealed_received_.data(),
                                   static_cast<uint32_t>(sealed_received_.size()));
    receiving_since_ = kNever;
  } while (got == -EINTR || got == -EAGAIN);
  if (got <= 0) co_return false;
  last_heard_ = Poller::Now();
  tls_->Feed(std::as_const(sealed_received_).span().first(static_cast<size_t>(got)));
  co_return true;
}

Task<Received> SocketStream::ReceiveSealed(std::vector<iovec>& pieces) {
  const bool direct = pieces.front().iov_len >= kReceiveBufferSize / 2;
  const MutableByteSpan into =
      direct ? MutableByteSpan(static_cast<uint8_t*>(pieces.front().iov_base),
                               pieces.front().iov_len)
             : buffer_.span();
  for (;;) {
    if (closing_) co_return Received::kEnded;
    const Result<size_t> opened = tls_->Open(into);
    if (!opened.ok()) {
      complaint_ = opened.status().message();
      co_return Received::kEnded;
    }
    if (opened.value() > 0) {
      begin_ = 0;
      end_ = direct ? 0 : opened.value();
      if (direct) Advance(pieces, opened.value());
      inside_frame_ = true;
      co_return Received::kOk;
    }
    if (!co_await FeedTls()) co_return Received::kEnded;
  }
}

Task<int64_t> SocketStream::SendSealed(const msghdr& message) {
  int64_t size = 0;
  for (size_t i = 0; i < message.msg_iovlen; ++i) {
    const iovec& piece = message.msg_iov[i];
    const Status status =
        tls_->Seal({static_cast<const uint8_t*>(piece.iov_base), piece.iov_len});
    if (!status.ok()) co_return -EPIPE;
    size += static_cast<int64_t>(piece.iov_len);
  }
  const bool sent = co_await SendDrained();
  co_return sent ? size : -EPIPE;
}

Task<bool> SocketStream::SendDrained() {
  sealed_to_send_.clear();
  tls_->Drain(sealed_to_send_);
  co_return co_await SendWhole(sealed_to_send_);
}

// --- Receiving ----------------------------------------------------------------------------------

Task<Received> SocketStream::Skip(uint64_t size) {
  std::vector<uint8_t> scratch(std::min<uint64_t>(size, kSkipSize));
  while (size > 0) {
    const uint64_t step = std::min<uint64_t>(size, scratch.size());
    std::vector<MutableByteSpan> into{MutableByteSpan(scratch).first(step)};
    const Received received = co_await Fill(std::move(into));
    if (received != Received::kOk) co_return received;
    size -= step;
  }
  co_return Received::kOk;
}

int SocketStream::TakeDescriptor() {
  if (descriptors_.empty()) return -1;
  const int descriptor = descriptors_.front();
  descriptors_.pop_front();
  return descriptor;
}

Task<Received> SocketStream::Fill(std::vector<MutableByteSpan> into) {
  std::vector<iovec> pieces;
  for (const MutableByteSpan part : into) {
    if (!part.empty()) pieces.push_back({.iov_base = part.data(), .iov_len = part.size()});
  }
  while (!pieces.empty()) {
    if (begin_ == end_) {
      const Received received = co_await ReceiveSome(pieces);
      if (received != Received::kOk) co_return received;
    } else {
      TakeBuffered(pieces);
    }
  }
  co_return Received::kOk;
}

Task<size_t> SocketStream::FillSome(MutableByteSpan into) {
  std::vector<iovec> pieces;
  pieces.push_back({.iov_base = into.data(), .iov_len = into.size()});
  if (begin_ == end_) {
    const Received received = co_await ReceiveSome(pieces);
    if (received != Received::kOk) co_return 0;
  }
  if (begin_ < end_ && !pieces.empty()) TakeBuffered(pieces);
  co_return into.size() - (pieces.empty() ? 0 : pieces.front().iov_len);
}

void SocketStream::TakeBuffered(std::vector<iovec>& pieces) {
  const size_t size = std::min(pieces.front().iov_len, end_ - begin_);
  std::memcpy(pieces.front().iov_base, buffer_.data() + begin_, size);
  begin_ += size;
  Advance(pieces, size);
  inside_frame_ = true;
}

Task<Received> SocketStream::ReceiveSome(std::vector<iovec>& pieces) {
  if (tls_ != nullptr) co_return co_await ReceiveSealed(pieces);
  // Large parts are filled in place; what comes after them, or small ones, goes to the buffer.
  std::vector<iovec> targets;
  size_t direct = 0;
  if (pieces.front().iov_len >= kReceiveBufferSize / 2 || pieces.size() > 1) {
    targets.assign(pieces.begin(),
                   pieces.begin() + static_cast<ptrdiff_t>(std::min(pieces.size(), kPiecesMax)));
    for (const iovec& target : targets) direct += target.iov_len;
  }
  targets.push_back({.iov_base = buffer_.data(), .iov_len = buffer_.size()});
  alignas(cmsghdr) std::array<uint8_t, CMSG_SPACE(kDescriptorsMax * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = targets.data();
  message.msg_iovlen = targets.size();
  int64_t got = 0;
  do {
    if (closing_) co_return Received::kEnded;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (inside_frame_) receiving_since_ = Poller::Now();
    got = co_await poller_.ReceiveMessage(socket_, message);
    receiving_since_ = kNever;
  } while (got == -EINTR || got == -EAGAIN);
  if (got <= 0) co_return Received::kEnded;
  last_heard_ = Poller::Now();
  if (!KeepDescriptors(message)) co_return Received::kMalformed;
  inside_frame_ = true;
  const auto size = static_cast<size_t>(got);
  begin_ = 0;
  end_ = size > direct ? size - direct : 0;
  Advance(pieces, std::min(size, direct));
  co_return Received::kOk;
}

bool SocketStream::KeepDescriptors(msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      descriptors_.push_back(descriptor);
    }
  }
  return descriptors_.size() <= kDescriptorsMax && (message.msg_flags & MSG_CTRUNC) == 0;
}

// --- Sending ------------------------------------------------------------------------------------

Task<bool> SocketStream::Send(Outgoing outgoing) {
  if (closing_) co_return false;
  Sending sending(poller_.loop(), std::move(outgoing));
  queue_.push_back(&sending);
  if (wake_.has_value()) wake_->Set();
  co_return co_await sending.done;
}

void SocketStream::Withdraw(uint64_t ticket) {
  const auto waiting = queue_.begin() + static_cast<ptrdiff_t>(gathered_);
  const auto found = std::find_if(waiting, queue_.end(), [ticket](const Sending* sending) {
    return sending->outgoing.ticket == ticket && sending->sent == 0;
  });
  if (found == queue_.end()) return;
  (*found)->done.Set(false);
  queue_.erase(found);
}

Task<bool> SocketStream::SendAhead(ByteSpan bytes) {
  if (tls_ == nullptr) co_return co_await SendWhole(bytes);
  if (!tls_->Seal(bytes).ok()) co_return false;
  co_return co_await SendDrained();
}

Task<bool> SocketStream::SendWhole(ByteSpan bytes) {
  while (!bytes.empty()) {
    if (closing_) co_return false;
    iovec piece{.iov_base = const_cast<uint8_t*>(bytes.data()), .iov_len = bytes.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    sending_since_ = Poller::Now();
    const int64_t sent = co_await poller_.Send(socket_, message);
    sending_since_ = kNever;
    if (sent == -EINTR || sent == -EAGAIN) continue;
    if (sent <= 0) co_return false;
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
  co_return true;
}

Task<void> SocketStream::SendFrames() {
  std::vector<iovec> pieces;
  while (!closing_) {
    if (queue_.empty()) {
      Event& wake = wake_.emplace(poller_.loop());
      co_await wake;
      wake_.reset();
      continue;
    }
    GatherSends(pieces);
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    alignas(cmsghdr) std::array<uint8_t, CMSG_SPACE(sizeof(int))> control{};
    const int descriptor = queue_.front()->outgoing.descriptor;
    if (descriptor >= 0 && queue_.front()->sent == 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* part = CMSG_FIRSTHDR(&message);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(part), &descriptor, sizeof(int));
    }
    int64_t sent = 0;
    if (tls_ != nullptr) {
      sent = co_await SendSealed(message);
    } else {
      sending_since_ = Poller::Now();
      sent = co_await poller_.Send(socket_, message);
      sending_since_ = kNever;
    }
    gathered_ = 0;
    if (sent == -EINTR || sent == -EAGAIN) continue;
    if (sent <= 0) break;
    FinishSends(static_cast<size_t>(sent));
  }
  Close();
  for (Sending* sending : std::exchange(queue_, {})) sending->done.Set(false);
}

void SocketStream::GatherSends(std::vector<iovec>& pieces) {
  pieces.clear();
  gathered_ = 0;
  size_t room = kSendSizeMax;
  for (const Sending* sending : queue_) {
    // A descriptor travels with the first byte of a call: its frame begins one, and ends it.
    const bool alone = sending->outgoing.descriptor >= 0;
    if (alone && !pieces.empty()) return;
    ++gathered_;
    size_t skip = sending->sent;
    const auto add = [&](ByteSpan part) {
      const size_t from = std::min(skip, part.size());
      skip -= from;
      const size_t size = std::min(part.size() - from, room);
      if (size == 0) return;
      pieces.push_back({.iov_base = const_cast<uint8_t*>(part.data()) + from, .iov_len = size});
      room -= size;
    };
    add(sending->outgoing.frame);
    for (const ByteSpan part : sending->outgoing.payload) {
      if (room == 0 || pieces.size() >= kPiecesMax) return;
      add(part);
    }
    if (alone || room == 0 || pieces.size() >= kPiecesMax) return;
  }
}

void SocketStream::FinishSends(size_t sent) {
  while (sent > 0) {
    Sending& first = *queue_.front();
    const size_t step = std::min(sent, first.size - first.sent);
    first.sent += step;
    sent -= step;
    if (first.sent < first.size) return;
    queue_.pop_front();
    first.done.Set(true);
  }
}

}  // namespace cairn::kv
