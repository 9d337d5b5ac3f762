// One socket as a stream each way: receives in place, sends gathered, descriptors beside them.
//
// Small frames that are sent within one turn of the loop leave in one system call. Payload goes
// from the sender's memory into the socket, and from the socket into the receiver's memory.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kvstore/async/event.h"
#include "kvstore/async/task.h"
#include "kvstore/base/bytes.h"
#include "kvstore/os/poller.h"
#include "kvstore/os/tls.h"

namespace cairn::kv {

enum class Received : uint8_t { kOk, kEnded, kMalformed };

// On the poller's loop thread only. Whoever owns it runs SendFrames() once, receives in one task at
// a time, and after Close() awaits both before it destroys the stream.
class SocketStream {
 public:
  // Takes the socket over. `poller` must outlive this.
  SocketStream(Poller& poller, int socket);
  ~SocketStream();
  SocketStream(const SocketStream&) = delete;
  SocketStream& operator=(const SocketStream&) = delete;

  // Before anything is received, and before SendFrames is run: all is encrypted. Errors as of
  // TlsSession::Handshake; kUnavailable: the stream ended meanwhile. Then it is of no use.
  Task<Status> StartTls(std::unique_ptr<TlsSession> tls);

  // --- Receiving ---
  // What comes next begins a frame: silence from here on keeps nobody waiting.
  void ExpectFrame() { inside_frame_ = begin_ < end_; }
  // Fills the spans one after another, whole.
  Task<Received> Fill(std::vector<MutableByteSpan> into);
  // Fills at least one byte of `into`, and says how many; 0: the stream has ended.
  Task<size_t> FillSome(MutableByteSpan into);
  Task<Received> Skip(uint64_t size);
  // The oldest descriptor that came and was not taken, now the caller's; -1 when there is none.
  int TakeDescriptor();

  // --- Sending ---
  struct Outgoing {
    std::vector<uint8_t> frame;
    std::vector<ByteSpan> payload = {};  // The sender's memory, until the task is done.
    int descriptor = -1;  // Goes with the frame, over a unix socket. Not taken over.
    uint64_t ticket = 0;  // For Withdraw.
  };
  // True when the kernel has all of it; false when the stream closed before, or it was withdrawn.
  Task<bool> Send(Outgoing outgoing);
  // Takes back a frame of which nothing has begun to leave, if there is one: its Send ends.
  void Withdraw(uint64_t ticket);
  // Sends what was and will be given to Send, until Close.
  Task<void> SendFrames();
  // Before SendFrames is run: past the queue.
  Task<bool> SendAhead(ByteSpan bytes);

  // Ends everything above soon: the peer sees the end of the stream.
  void Close();
  bool closing() const { return closing_; }
  // Why nothing more could be received, where TLS knows more than that the stream ended.
  const std::string& complaint() const { return complaint_; }

  // Since when the peer has kept us waiting in the middle of a frame, one way or the other; kNever
  // when it does not.
  Instant stalled_since() const { return std::min(receiving_since_, sending_since_); }
  Instant last_heard() const { return last_heard_; }
  bool sends_queued() const { return !queue_.empty(); }
  int socket() const { return socket_; }

 private:
  struct Sending;

  // Receives at least one byte into what is left of `pieces`, and then into the buffer.
  Task<Received> ReceiveSome(std::vector<iovec>& pieces);
  Task<Received> ReceiveSealed(std::vector<iovec>& pieces);
  // What the socket brings next, to the session. False: the stream has ended.
  Task<bool> FeedTls();
  Task<bool> SendDrained();
  Task<bool> SendWhole(ByteSpan bytes);
  // All of `message`, or an error: as the system call would say.
  Task<int64_t> SendSealed(const msghdr& message);
  // What the buffer has, moved to the front of `pieces`.
  void TakeBuffered(std::vector<iovec>& pieces);
  bool KeepDescriptors(msghdr& message);
  void GatherSends(std::vector<iovec>& pieces);
  void FinishSends(size_t sent);

  Poller& poller_;
  const int socket_;

  std::unique_ptr<TlsSession> tls_;  // Null: nothing is encrypted.
  Bytes sealed_received_;
  std::vector<uint8_t> sealed_to_send_;
  std::string complaint_;

  bool closing_ = false;
  std::deque<Sending*> queue_;
  size_t gathered_ = 0;        // Frames at the head of the queue that a system call looks at.
  std::optional<Event> wake_;  // Set when the sender sleeps and there is something to send.

  Bytes buffer_;  // Received, not yet looked at: [begin_, end_).
  size_t begin_ = 0;
  size_t end_ = 0;
  bool inside_frame_ = false;
  std::deque<int> descriptors_;

  Instant receiving_since_ = kNever;
  Instant sending_since_ = kNever;
  Instant last_heard_;
};

}  // namespace cairn::kv
