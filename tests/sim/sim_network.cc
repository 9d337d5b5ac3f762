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
using kv::NodeId;
using kv::Result;
using kv::Status;
using kv::Task;

class SimNetwork::Node final : public kv::Network {
 public:
  Node(SimNetwork& network, NodeId id) : network_(network), id_(id) {}

  Task<Result<Bytes>> Call(NodeId target, Bytes request, Instant deadline) override {
    if (request.size() > kv::kMessageSizeMax) {
      co_return Status(Code::kInvalid, "request is larger than a message may be");
    }
    PendingCall pending(network_.loop_);
    const uint64_t call = network_.next_call_++;
    pending_.emplace(call, &pending);
    network_.Send(
        Message{id_, target, call, generation_, Message::Kind::kRequest, std::move(request)});
    co_await network_.clock_.SleepUntil(deadline, &pending.done);
    pending_.erase(call);
    if (!pending.done.is_set()) co_return Status(Code::kDeadline, "no answer in time");
    if (!pending.answer.has_value()) co_return Status(Code::kUnavailable, "peer is not reachable");
    co_return std::move(*pending.answer);
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
    if (message.kind == Message::Kind::kAnswer) found->second->answer = std::move(message.bytes);
    found->second->done.Set();
  }

  const Handler& handler() const { return handler_; }
  uint64_t generation() const { return generation_; }

 private:
  struct PendingCall {
    explicit PendingCall(kv::Loop& loop) : done(loop) {}
    kv::Event done;
    std::optional<Bytes> answer;
  };

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
              kv::Checksum(message.bytes.span()));
  if (cut || (link.loss > 0 && random_.Chance(link.loss, 1'000'000))) {
    ++messages_dropped_;
    clock_.Note(TraceKind::kDrop, message.source.value, message.target.value, message.call);
    return;
  }
  if (link.repeat > 0 && random_.Chance(link.repeat, 1'000'000)) {
    SendCopy(Message{message.source, message.target, message.call, message.source_generation,
                     message.kind, Bytes::CopyOf(message.bytes.span())},
             link);
  }
  SendCopy(std::move(message), link);
}

void SimNetwork::SendCopy(Message message, const LinkOptions& link) {
  const auto spread = static_cast<uint64_t>((link.latency_max - link.latency_min).value);
  const auto transfer =
      static_cast<int64_t>(message.bytes.size() * 1'000 / (link.bytes_per_second / 1'000'000));
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
    Send(Message{message.target, message.source, message.call, message.source_generation,
                 Message::Kind::kRefusal, Bytes()});
    return;
  }
  answers_.Hold(Answer(std::move(message)));
}

Task<void> SimNetwork::Answer(Message request) {
  Node& node = NodeOf(request.target);
  const uint64_t generation = node.generation();
  // A copy: a crash clears the node's handler while this call of it goes on.
  const kv::Network::Handler handler = node.handler();
  Bytes answer = co_await handler(request.source, std::move(request.bytes));
  if (node.generation() != generation) co_return;  // It crashed meanwhile.
  const bool fits = answer.size() <= kv::kMessageSizeMax;
  clock_.Note(TraceKind::kAnswer, request.target.value, request.call, answer.size());
  Send(Message{request.target, request.source, request.call, request.source_generation,
               fits ? Message::Kind::kAnswer : Message::Kind::kRefusal,
               fits ? std::move(answer) : Bytes()});
}

}  // namespace cairn::sim
