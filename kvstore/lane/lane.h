// One socket of a session: frames out in order, frames in one after another, payload in place.
//
// Small frames that are sent within one turn of the loop leave in one system call. Payload goes
// from the sender's memory into the socket, and from the socket into the receiver's memory.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "kvstore/async/event.h"
#include "kvstore/async/task.h"
#include "kvstore/os/poller.h"
#include "kvstore/wire/frame.h"

namespace cairn::kv {

enum class Received : uint8_t { kOk, kEnded, kMalformed };

// On the poller's loop thread only. Whoever owns it runs SendFrames() for its whole life, receives
// in one task at a time, and after Close() awaits both before it destroys the lane.
class Lane {
 public:
  // Takes the connected socket over. `poller` must outlive this.
  Lane(Poller& poller, int socket);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // --- Receiving: header, then its body, then its payload, whole, then the next header. ---
  Task<Received> ReceiveHeader(wire::FrameHeader& header);
  Task<Received> ReceiveBody(std::vector<uint8_t>& body);
  // The spans are filled one after another; they add up to the payload's size.
  Task<Received> ReceivePayload(std::vector<MutableByteSpan> into);
  Task<Received> SkipPayload(uint64_t size);
  // The oldest descriptor that came and was not taken, now the caller's; -1 when there is none.
  int TakeDescriptor();

  // --- Sending ---
  struct Outgoing {
    std::vector<uint8_t> frame;         // wire::EncodeFrame.
    std::vector<ByteSpan> payload = {};  // The sender's memory, until the task is done.
    int descriptor = -1;                 // Goes with the frame, over a unix socket. Not taken over.
  };
  // True when the kernel has all of it; false when the lane closed before.
  Task<bool> Send(Outgoing outgoing);
  Task<void> SendFrames();

  // Ends everything above soon: the peer sees the end of the stream.
  void Close();
  bool closing() const { return closing_; }

  // Since when the peer has kept us waiting in the middle of a frame, one way or the other; kNever
  // when it does not.
  Instant stalled_since() const { return std::min(receiving_since_, sending_since_); }
  Instant last_heard() const { return last_heard_; }
  bool sends_queued() const { return !queue_.empty(); }

 private:
  struct Sending;

  Task<Received> Fill(std::vector<MutableByteSpan> into);
  // Receives at least one byte into what is left of `into`, and then into the buffer.
  Task<Received> ReceiveSome(std::vector<iovec>& pieces);
  bool KeepDescriptors(msghdr& message);
  void GatherSends(std::vector<iovec>& pieces) const;
  void FinishSends(size_t sent);

  Poller& poller_;
  const int socket_;

  bool closing_ = false;
  std::deque<Sending*> queue_;
  std::optional<Event> wake_;  // Set when the sender sleeps and there is something to send.

  Bytes buffer_;  // Received, not yet looked at: [begin_, end_).
  size_t begin_ = 0;
  size_t end_ = 0;
  bool inside_frame_ = false;
  wire::FrameHeaderBytes header_{};
  uint32_t body_size_ = 0;
  std::deque<int> descriptors_;

  Instant receiving_since_ = kNever;
  Instant sending_since_ = kNever;
  Instant last_heard_;
};

}  // namespace cairn::kv
