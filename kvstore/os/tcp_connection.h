// One socket between two nodes: whole frames out in order, whole frames in to a sink.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "kvstore/async/event.h"
#include "kvstore/async/task.h"
#include "kvstore/os/poller.h"
#include "kvstore/os/tcp_frame.h"

namespace cairn::kv {

struct Frame {
  FrameHeader header;
  Bytes payload;

  Frame(const FrameHeader& frame_header, Bytes frame_payload)
      : header(frame_header), payload(std::move(frame_payload)) {}
};

// Frames waiting to be sent on one connection, in bytes: beyond it Enqueue refuses.
inline constexpr uint64_t kSendQueueBytesMax = 4 * kMessageSizeMax;

class TcpConnection {
 public:
  class Sink {
   public:
    virtual ~Sink() = default;
    // Reading goes on when the task is done. False closes the connection: the frame makes no sense.
    virtual Task<bool> OnFrame(uint64_t connection_id, Frame frame) = 0;
    virtual void OnMalformed(uint64_t connection_id) = 0;
  };

  // Takes `socket` over; it may not be connected yet: frames wait. `poller` must outlive this.
  TcpConnection(Poller& poller, int socket, uint64_t id);
  ~TcpConnection();

  // Sends and receives on the connected socket until either fails or Close is called.
  Task<void> Run(Sink& sink);
  // Ends Run, and a connect in progress, soon.
  void Close();

  // False when the queue is full or the connection is closing.
  bool Enqueue(Frame frame);
  // Takes a request back that has not begun to be sent.
  void Withdraw(uint64_t request_id);

  int socket() const { return socket_; }
  uint64_t id() const { return id_; }

 private:
  Task<void> ReceiveFrames(Sink& sink);
  // False when the stream ended.
  Task<bool> Fill(MutableByteSpan target);
  Task<void> SendFrames();
  Task<bool> SendWhole(Frame frame);

  Poller& poller_;
  const int socket_;
  const uint64_t id_;

  bool closing_ = false;
  std::deque<Frame> queue_;
  uint64_t queue_bytes_ = 0;
  std::optional<Event> wake_;  // Set when the sender sleeps and there is something to send.

  Bytes buffer_;  // Received, not yet looked at: [begin_, end_).
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace cairn::kv
