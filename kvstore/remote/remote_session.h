// One connection to a server, from its hello to its end: calls out, answers in, in any order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kvstore/async/gate.h"
#include "kvstore/lane/lane.h"
#include "kvstore/os/socket_address.h"
#include "kvstore/remote/credits.h"
#include "kvstore/remote/remote_store.h"
#include "kvstore/wire/messages.h"

namespace cairn::kv {

// Shared by the store and by the calls in flight. Loop thread only.
class RemoteSession {
 public:
  // `parts` and `stats` must outlive it. Errors as of RemoteStore::Connect.
  static Task<Result<std::shared_ptr<RemoteSession>>> Open(RemoteParts parts,
                                                           const RemoteOptions& options,
                                                           RemoteStats& stats);
  RemoteSession(RemoteParts parts, const RemoteOptions& options, RemoteStats& stats);

  // Runs it until it breaks; then nothing is in flight on it any more, except for calls that have
  // yet to hear of it. Once, after Open.
  Task<void> Run();
  // Ends it: calls in flight fail with kUnavailable.
  void Break(std::string why);
  bool broken() const { return broken_.is_set(); }
  const std::string& why_broken() const { return why_; }

  const wire::HelloAnswer& limits() const { return limits_; }
  bool shares_memory() const { return (limits_.features & wire::kFeatureSharedMemory) != 0; }

  struct Order {
    wire::Verb verb = wire::Verb::kPing;
    std::vector<uint8_t> body = {};
    bool on_data_lane = false;
    std::vector<ByteSpan> payload = {};  // Of a put. The caller's memory, until the call is done.
    int descriptor = -1;
    uint64_t credit_bytes = 0;  // Of inline payload, either way.
    Instant deadline = kNever;
    // Of a get with payload: where the blocks go. Whole until the call is done.
    const std::vector<BlockRead>* reads = nullptr;
    // The server writes to shared memory: no answer by `deadline` breaks the session.
    bool lands_in_regions = false;
  };
  struct Answer {
    Status status;              // Of the transport: kUnavailable, kDeadline, kOverloaded.
    std::vector<uint8_t> body;  // When that is ok.
    // The server may have begun, and how it went is not known.
    bool unknown = false;
  };
  Task<Answer> Call(Order order);

  // Call, and the value in the answer.
  template <typename Value>
  Task<Result<Value>> Ask(Order order);

 private:
  struct Pending;
  struct Server {
    SocketAddress address;
    std::string host;                       // That its certificate is for.
    std::shared_ptr<const TlsContext> tls;  // Null: nothing is encrypted.
  };

  static Result<Server> ParseServer(const RemoteOptions& options);
  Task<Status> Connect(const RemoteOptions& options);
  Task<Result<wire::HelloAnswer>> OpenLane(const Server& server, int socket,
                                           wire::HelloRequest hello);
  Task<Result<wire::HelloAnswer>> SayHello(Lane& lane, wire::HelloRequest hello);
  Task<void> CloseAt(Instant deadline, Event* done, int socket);
  Task<void> ReceiveAnswers(Lane& lane);
  // False: the answer makes no sense.
  Task<Received> TakeAnswer(Lane& lane, wire::FrameHeader header);
  Task<Answer> Exchange(Lane& lane, Order order);
  Task<void> Ping();
  Lane& LaneFor(const Order& order, size_t& index);

  const RemoteParts parts_;
  RemoteStats& stats_;
  const std::string address_;
  wire::HelloAnswer limits_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // The first is the control lane.
  std::vector<Task<void>> senders_;           // One per lane, until Run takes them.
  std::vector<uint64_t> lane_bytes_;          // Payload in flight on each.
  std::optional<Credits> credits_;
  std::map<uint64_t, Pending*> pending_;
  uint64_t next_request_ = 1;
  std::string why_;
  Event broken_;
};

template <typename Value>
Task<Result<Value>> RemoteSession::Ask(Order order) {
  const Answer answer = co_await Call(std::move(order));
  if (!answer.status.ok()) co_return answer.status;
  std::optional<Result<Value>> parsed = wire::ParseAnswer<Value>(answer.body);
  if (parsed.has_value()) co_return std::move(*parsed);
  Break("the server sent a malformed answer");
  co_return Status(Code::kUnavailable, why_);
}

}  // namespace cairn::kv
