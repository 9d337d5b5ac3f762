// One socket of a session: frames out in order, frames in one after another, payload in place.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kvstore/async/task.h"
#include "kvstore/os/socket_stream.h"
#include "kvstore/wire/frame.h"

namespace cairn::kv {

// On the poller's loop thread only. Whoever owns it runs SendFrames() for its whole life, receives
// in one task at a time, and after Close() awaits both before it destroys the lane.
class Lane {
 public:
  // Takes the connected socket over. `poller` must outlive this.
  Lane(Poller& poller, int socket) : stream_(poller, socket) {}

  // As of SocketStream.
  Task<Status> StartTls(std::unique_ptr<TlsSession> tls) {
    return stream_.StartTls(std::move(tls));
  }
  const std::string& complaint() const { return stream_.complaint(); }

  // --- Receiving: header, then its body, then its payload, whole, then the next header. ---
  Task<Received> ReceiveHeader(wire::FrameHeader& header);
  Task<Received> ReceiveBody(std::vector<uint8_t>& body);
  // The spans are filled one after another; they add up to the payload's size.
  Task<Received> ReceivePayload(std::vector<MutableByteSpan> into) {
    return stream_.Fill(std::move(into));
  }
  Task<Received> SkipPayload(uint64_t size) { return stream_.Skip(size); }
  int TakeDescriptor() { return stream_.TakeDescriptor(); }

  // --- Sending: what wire::EncodeFrame made, and its payload. ---
  using Outgoing = SocketStream::Outgoing;
  Task<bool> Send(Outgoing outgoing) { return stream_.Send(std::move(outgoing)); }
  Task<void> SendFrames() { return stream_.SendFrames(); }

  void Close() { stream_.Close(); }
  bool closing() const { return stream_.closing(); }
  Instant stalled_since() const { return stream_.stalled_since(); }
  Instant last_heard() const { return stream_.last_heard(); }
  bool sends_queued() const { return stream_.sends_queued(); }

 private:
  SocketStream stream_;
  wire::FrameHeaderBytes header_{};
  uint32_t body_size_ = 0;
};

}  // namespace cairn::kv
