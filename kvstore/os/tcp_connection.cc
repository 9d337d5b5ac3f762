// A reader and a writer side by side.
#include "kvstore/os/tcp_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace cairn::kv {
namespace {

constexpr size_t kReceiveBufferSize = 64 * kKiB;

// Drops the first `sent` bytes from what a message still has to send.
void Advance(msghdr& message, size_t sent) {
  while (sent > 0) {
    iovec& first = *message.msg_iov;
    const size_t step = std::min(sent, first.iov_len);
    first.iov_base = static_cast<uint8_t*>(first.iov_base) + step;
    first.iov_len -= step;
    sent -= step;
    if (first.iov_len == 0) {
      ++message.msg_iov;
      --message.msg_iovlen;
    }
  }
}

}  // namespace

TcpConnection::TcpConnection(Poller& poller, int socket, uint64_t id)
    : poller_(poller), socket_(socket), id_(id), buffer_(kReceiveBufferSize) {
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

TcpConnection::~TcpConnection() { poller_.Close(socket_); }

Task<void> TcpConnection::Run(Sink& sink) {
  Task<void> sending = SendFrames();
  co_await ReceiveFrames(sink);
  Close();
  co_await sending;
}

void TcpConnection::Close() {
  if (closing_) return;
  closing_ = true;
  shutdown(socket_, SHUT_RDWR);
  if (wake_.has_value()) wake_->Set();
}

bool TcpConnection::Enqueue(Frame frame) {
  const uint64_t size = kFrameHeaderSize + frame.payload.size();
  if (closing_ || queue_bytes_ + size > kSendQueueBytesMax) return false;
  queue_bytes_ += size;
  queue_.push_back(std::move(frame));
  if (wake_.has_value()) wake_->Set();
  return true;
}

void TcpConnection::Withdraw(uint64_t request_id) {
  const auto found = std::find_if(queue_.begin(), queue_.end(), [request_id](const Frame& frame) {
    return frame.header.request_id == request_id && frame.header.kind == FrameKind::kRequest;
  });
  if (found == queue_.end()) return;
  queue_bytes_ -= kFrameHeaderSize + found->payload.size();
  queue_.erase(found);
}

Task<void> TcpConnection::ReceiveFrames(Sink& sink) {
  for (;;) {
    FrameHeaderBytes bytes;
    if (!co_await Fill(bytes)) co_return;
    const Result<FrameHeader> header = ParseFrameHeader(bytes);
    if (!header.ok()) {
      sink.OnMalformed(id_);
      co_return;
    }
    Frame frame(header.value(), Bytes(header.value().payload_size));
    if (!co_await Fill(frame.payload.span())) co_return;
    if (!co_await sink.OnFrame(id_, std::move(frame))) {
      sink.OnMalformed(id_);
      co_return;
    }
  }
}

Task<bool> TcpConnection::Fill(MutableByteSpan target) {
  while (!target.empty()) {
    if (begin_ == end_ && target.size() < kReceiveBufferSize) {
      const int64_t got = co_await poller_.Receive(socket_, buffer_.data(), kReceiveBufferSize);
      if (got == -EINTR || got == -EAGAIN) continue;
      if (got <= 0) co_return false;
      begin_ = 0;
      end_ = static_cast<size_t>(got);
    }
    if (begin_ < end_) {
      const size_t size = std::min(target.size(), end_ - begin_);
      std::memcpy(target.data(), buffer_.data() + begin_, size);
      begin_ += size;
      target = target.subspan(size);
      continue;
    }
    // Large payloads land where they belong.
    const auto size = static_cast<uint32_t>(target.size());
    const int64_t got = co_await poller_.Receive(socket_, target.data(), size);
    if (got == -EINTR || got == -EAGAIN) continue;
    if (got <= 0) co_return false;
    target = target.subspan(static_cast<size_t>(got));
  }
  co_return true;
}

Task<void> TcpConnection::SendFrames() {
  for (;;) {
    while (!queue_.empty() && !closing_) {
      Frame frame = std::move(queue_.front());
      queue_.pop_front();
      const uint64_t size = kFrameHeaderSize + frame.payload.size();
      const bool sent = co_await SendWhole(std::move(frame));
      queue_bytes_ -= size;
      if (!sent) Close();
    }
    if (closing_) co_return;
    Event& wake = wake_.emplace(poller_.loop());
    co_await wake;
    wake_.reset();
  }
}

Task<bool> TcpConnection::SendWhole(Frame frame) {
  FrameHeaderBytes header = EncodeFrameHeader(frame.header);
  std::array<iovec, 2> pieces;
  pieces[0] = iovec{.iov_base = header.data(), .iov_len = header.size()};
  pieces[1] = iovec{.iov_base = frame.payload.data(), .iov_len = frame.payload.size()};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = frame.payload.empty() ? 1 : 2;
  while (message.msg_iovlen > 0) {
    const int64_t sent = co_await poller_.Send(socket_, message);
    if (sent == -EINTR || sent == -EAGAIN) continue;
    if (sent <= 0) co_return false;
    Advance(message, static_cast<size_t>(sent));
  }
  co_return true;
}

}  // namespace cairn::kv
