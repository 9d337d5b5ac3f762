// Carries each message as one event of the clock.
#include "tests/sim/sim_network.h"

#include <algorithm>

#include "kvstore/async/event.h"
#include "kvstore/base/check.h"
#include "kvstore/base/checksum.h"

namespace cairn::sim {

using kv::Bytes;
using kv::Code;
using kv::Instant;
using kv::MutableByteSpan;
using kv::NodeId;
using kv::Result;
using kv::Status;
using kv::Task;

SimNetwork::Message SimNetwork::Message::Copy() const {
  return {.source = source, .target = target, .call = call,
          .source_generation = source_generation, .kind = kind,
          .body = Bytes::CopyOf(body.span()), .payload = Bytes::CopyOf(payload.span()),
          .room = room};
}

SimNetwork::Message SimNetwork::Message::Refusal() const {
  return {.source = target, .target = source, .call = call,
          .source_generation = source_generation, .kind = Kind::kRefusal};
}

class SimNetwork::Node final : public kv::Network {
 public:
  Node(SimNetwork& network, NodeId id) : network_(network), id_(id) {}

  Task<Result<Answer>> Call(NodeId target, Outgoing request, MutableByteSpan into,
                            Instant deadline) override {
    if (request.body.size() > kv::kMessageBodySizeMax ||
        request.payload_size() > kv::kMessagePayloadSizeMax) {
      co_return Status(Code::kInvalid, "request is larger than a message may be");
    }
    if (deadline <= network_.clock_.Now()) co_return Status(Code::kDeadline, "too late to call");
    PendingCall pending(network_.loop_, target, into);
    const uint64_t call = network_.next_call_++;
    pending_.emplace(call, &pending);
    Message message{.source = id_, .target = target, .call = call,
                    .source_generation = generation_, .kind = Message::Kind::kRequest,
                    .body = std::move(request.body), .payload = Joined(request),
                    .room = std::min<uint64_t>(into.size(), kv::kMessagePayloadSizeMax)};
    network_.Send(std::move(message));
    co_await network_.clock_.SleepUntil(deadline, &pending.done);
    pending_.erase(call);
    if (!pending.done.is_set()) co_return Status(Code::kDeadline, "no answer in time");
    if (!pending.answer.has_value()) co_return Status(Code::kUnavailable, "peer is not reachable");
    co_return std::move(*pending.answer);
  }

  void Abandon(NodeId peer) override {
    for (auto& [call, pending] : pending_) {
      if (pending->target == peer) pending->done.Set();
    }
  }

  // A node that crashed serves again by calling this anew.
  void Serve(Handler handler) override {
    KV_CHECK(handler_ == nullptr);
    handler_ = std::move(handler);
  }

  void Crash() {
    ++generation_;
    handler_ = nullptr;
    for (auto& [call, pending] : pending_) pending->done.Set();
  }

  void OnAnswer(Message message) {
    const auto found = pending_.find(message.call);
    if (found == pending_.end() || found->second->done.is_set()) return;  // Late, or repeated.
    PendingCall& pending = *found->second;
    if (message.kind == Message::Kind::kAnswer) {
      const kv::ByteSpan payload = std::as_const(message.payload).span();
      std::copy(payload.begin(), payload.end(), pending.into.begin());
      pending.answer.emplace(std::move(message.body), payload.size());
    }
    pending.done.Set();
  }

  const Handler& handler() const { return handler_; }
  uint64_t generation() const { return generation_; }

 private:
  struct PendingCall {
    PendingCall(kv::Loop& loop, NodeId peer, MutableByteSpan memory)
        : done(loop), target(peer), into(memory) {}
    kv::Event done;
    const NodeId target;
    const MutableByteSpan into;
    std::optional<Answer> answer;
  };

  static Bytes Joined(const Outgoing& request) {
    Bytes whole = Bytes(request.payload_size());
    uint8_t* to = whole.data();
    for (const kv::ByteSpan piece : request.payload) to = std::copy(piece.begin(), piece.end(), to);
    return whole;
  }

  SimNetwork& network_;
  const NodeId id_;
  Handler handler_;
  uint64_t generation_ = 1;
  std::map<uint64_t, PendingCall*> pending_;
};

SimNetwork::SimNetwork(kv::Loop& loop, SimClock& clock, uint64_t seed)
    : loop_(loop), clock_(clock), random_(seed), answers_(loop) {}
SimNetwork::~SimNetwork() = default;

kv::Network& SimNetwork::node(NodeId id) { return NodeOf(id); }

void SimNetwork::Cut(NodeId source, NodeId target) {
  cuts_.emplace(source, target);
  clock_.Note(TraceKind::kPartition, source.value, target.value, 1);
}

void SimNetwork::Heal(NodeId source, NodeId target) {
  cuts_.erase({source, target});
  clock_.Note(TraceKind::kPartition, source.value, target.value, 0);
}

void SimNetwork::Isolate(NodeId id) {
  isolated_.insert(id);
  clock_.Note(TraceKind::kPartition, id.value, id.value, 1);
}

void SimNetwork::HealAll() {
  cuts_.clear();
  isolated_.clear();
  clock_.Note(TraceKind::kPartition, 0, 0, 0);
}

void SimNetwork::Crash(NodeId id) {
  NodeOf(id).Crash();
  clock_.Note(TraceKind::kCrash, id.value, 0, 0);
}

SimNetwork::Node& SimNetwork::NodeOf(NodeId id) {
  std::unique_ptr<Node>& node = nodes_[id];
  if (node == nullptr) node = std::make_unique<Node>(*this, id);
  return *node;
}

const LinkOptions& SimNetwork::LinkOf(NodeId source, NodeId target) const {
  const auto found = links_.find({source, target});
  return found != links_.end() ? found->second : default_link_;
}

void SimNetwork::Send(Message message) {
  const LinkOptions& link = LinkOf(message.source, message.target);
  const bool cut = cuts_.contains({message.source, message.target}) ||
                   (message.source != message.target &&
                    (isolated_.contains(message.source) || isolated_.contains(message.target)));
  ++messages_sent_;
  clock_.Note(TraceKind::kSend, message.source.value, message.target.value,
              kv::Checksum(message.body.span()) ^ kv::Checksum(message.payload.span()));
  if (cut || (link.loss > 0 && random_.Chance(link.loss, 1'000'000))) {
    ++messages_dropped_;
    clock_.Note(TraceKind::kDrop, message.source.value, message.target.value, message.call);
    return;
  }
  if (link.repeat > 0 && random_.Chance(link.repeat, 1'000'000)) {
    SendCopy(message.Copy(), link);
  }
  SendCopy(std::move(message), link);
}

void SimNetwork::SendCopy(Message message, const LinkOptions& link) {
  const auto spread = static_cast<uint64_t>((link.latency_max - link.latency_min).value);
  const auto transfer =
      static_cast<int64_t>(message.size() * 1'000 / (link.bytes_per_second / 1'000'000));
  kv::Nanos latency{link.latency_min.value + static_cast<int64_t>(random_.Below(spread + 1))};
  const bool overtaken = link.reorder > 0 && random_.Chance(link.reorder, 1'000'000);
  if (overtaken) latency.value *= 1 + static_cast<int64_t>(random_.Below(100));
  Instant at = clock_.Now() + latency + kv::Nanos{transfer};
  if (!overtaken) {
    Instant& last = last_arrival_[{message.source, message.target}];
    at = last = std::max(at, last);
  }
  const uint64_t id = next_message_++;
  in_flight_.emplace(id, std::move(message));
  clock_.At(at, [this, id] { Deliver(id); });
}

void SimNetwork::Deliver(uint64_t message_id) {
  Message message = std::move(in_flight_.extract(message_id).mapped());
  clock_.Note(TraceKind::kDeliver, message.target.value, message.call,
              static_cast<uint64_t>(message.kind));
  if (message.kind != Message::Kind::kRequest) {
    if (message.source_generation == NodeOf(message.target).generation()) {
      NodeOf(message.target).OnAnswer(std::move(message));
    }
    return;
  }
  if (NodeOf(message.target).handler() == nullptr) {
    Send(message.Refusal());
    return;
  }
  answers_.Hold(Answer(std::move(message)));
}

Task<void> SimNetwork::Answer(Message request) {
  Node& node = NodeOf(request.target);
  const uint64_t generation = node.generation();
  // A copy: a crash clears the node's handler while this call of it goes on.
  const kv::Network::Handler handler = node.handler();
  const uint64_t room = request.room;
  kv::Network::Reply reply = co_await handler(request.source, std::move(request.body),
                                              std::move(request.payload));
  if (node.generation() != generation) co_return;  // It crashed meanwhile.
  const bool fits = reply.body.size() <= kv::kMessageBodySizeMax && reply.payload.size() <= room;
  clock_.Note(TraceKind::kAnswer, request.target.value, request.call,
              reply.body.size() + reply.payload.size());
  Message answer = request.Refusal();
  if (fits) {
    answer.kind = Message::Kind::kAnswer;
    answer.body = std::move(reply.body);
    answer.payload = std::move(reply.payload);
  }
  Send(std::move(answer));
}

}  // namespace cairn::sim
