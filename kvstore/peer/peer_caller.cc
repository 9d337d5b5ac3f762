// The head is made anew for a repeated request: less of its budget is left.
#include "kvstore/peer/peer_caller.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace cairn::kv {
namespace {

constexpr uint32_t kMapRoomFirst = 64 * kKiB;
constexpr Nanos kPatienceMin = Millis(50);
constexpr Nanos kPatienceMax = Millis(200);
constexpr Nanos kSilentFor = Seconds(5);
constexpr Nanos kAskEvery = Millis(200);  // Whether a silent node is back.
constexpr Nanos kAskPatience = Seconds(1);
constexpr int kMapAttemptsMax = 4;  // A larger one takes two, and more when it grows meanwhile.

}  // namespace

Task<Result<PeerCaller::Answer>> PeerCaller::Ask(Order order) {
  if (IsSilent(order)) co_return Status(Code::kUnavailable, "the node did not answer just now");
  Result<Network::Answer> answer = co_await Send(order);
  const bool again = answer.code() == Code::kUnavailable && order.repeat == Repeat::kOnce &&
                     clock_.Now() < order.deadline && !IsSilent(order);
  if (again) answer = co_await Send(order);
  if (!answer.ok()) co_return answer.status();
  Answer taken;
  taken.body = std::move(answer.value().body);
  taken.payload_size = answer.value().payload_size;
  KV_CO_ASSIGN_OR_RETURN(const auto parsed,
                         peer::ParseAnswerHead(std::as_const(taken.body).span()));
  taken.head = parsed.first;
  taken.fields_at = taken.body.size() - parsed.second.size();
  if (taken.head.epoch > map_.epoch()) map_.OnNewer(order.node, taken.head.epoch);
  co_return std::move(taken);
}

// RFC 6298, section 2.
void PeerCaller::Peer::Learn(Nanos took) {
  if (!smoothed) {
    smoothed = took;
    variation = Nanos{took.value / 2};
    return;
  }
  const int64_t error = std::abs(smoothed->value - took.value);
  variation.value += (error - variation.value) / 4;
  smoothed->value += (took.value - smoothed->value) / 8;
}

Nanos PeerCaller::Peer::Patience() const {
  if (!smoothed) return kPatienceMax;
  const Nanos usual{smoothed->value + 4 * variation.value};
  return std::clamp(usual, kPatienceMin, kPatienceMax);
}

Task<void> PeerCaller::Stop() {
  stopping_.Set();
  return gate_.Close();
}

Task<void> PeerCaller::Watch(NodeId node) {
  Peer& peer = peers_[node];
  const auto is_silent = [&] { return clock_.Now() < peer.silent_until; };
  while ((peer.waiting > 0 || is_silent()) && !stopping_.is_set()) {
    if (is_silent()) {
      (void)co_await IsAlive(node, kAskPatience);
      if (is_silent()) co_await clock_.SleepUntil(clock_.Now() + kAskEvery, &stopping_);
      continue;
    }
    const Nanos patience = peer.Patience();
    const Nanos quiet{std::max(kPatienceMin.value, patience.value / 2)};
    const Instant quiet_at = peer.heard_at + quiet;
    if (clock_.Now() < quiet_at) {
      co_await clock_.SleepUntil(quiet_at, &stopping_);
      continue;
    }
    const Instant heard_at = peer.heard_at;
    const bool alive = co_await IsAlive(node, patience);
    if (alive) peer.heard_at = clock_.Now();
    if (alive || peer.heard_at != heard_at) continue;
    peer.silent_until = clock_.Now() + kSilentFor;
    network_.Abandon(node);
  }
  peer.watched = false;
}

// It may wait for others: this it can answer by itself.
Task<bool> PeerCaller::IsAlive(NodeId node, Nanos patience) {
  Order order{.node = node, .target = {}, .verb = peer::Verb::kProbe};
  order.message = peer::Encode(peer::ProbeRequest()).value();
  order.deadline = clock_.Now() + patience;
  const Result<Network::Answer> answer = co_await Send(order);
  co_return answer.ok() || answer.code() == Code::kOverloaded;
}

bool PeerCaller::IsSilent(const Order& order) const {
  const auto known = peers_.find(order.node);
  return order.verb != peer::Verb::kProbe && known != peers_.end() &&
         clock_.Now() < known->second.silent_until;
}

Task<Result<Network::Answer>> PeerCaller::Send(const Order& order) {
  const peer::RequestHead head{.version = order.version,
                               .verb = order.verb,
                               .epoch = map_.epoch(),
                               .budget_nanos = (order.deadline - clock_.Now()).value,
                               .target = order.target};
  Network::Outgoing request(peer::EncodeRequest(head, order.message), order.payload);
  Peer& peer = peers_[order.node];
  if (peer.waiting++ == 0) peer.heard_at = clock_.Now();
  // A probe waits for a silent node as long as it likes.
  if (!peer.watched && clock_.Now() >= peer.silent_until && !stopping_.is_set()) {
    peer.watched = true;
    gate_.Hold(Watch(order.node));
  }
  const Instant began = clock_.Now();
  auto answer = co_await network_.Call(order.node, std::move(request), order.into, order.deadline);
  --peer.waiting;
  if (answer.ok()) {
    peer.heard_at = clock_.Now();
    peer.Learn(clock_.Now() - began);
    peer.silent_until = Instant();
  }
  co_return answer;
}

Task<Result<Bytes>> PeerCaller::AskHome(NodeId node, Bytes request, Instant deadline) {
  peer::HomeRequest message;
  message.bytes = std::move(request);
  Order order{.node = node, .target = {}, .verb = peer::Verb::kAskHome};
  order.message = peer::Encode(message).value();
  order.deadline = deadline;
  const Result<Answer> answer = co_await Ask(std::move(order));
  if (!answer.ok()) co_return answer.status();
  auto home = peer::ParseAnswer<peer::HomeAnswer>(answer.value().fields());
  if (!home.ok()) co_return home.status();
  co_return std::move(home.value().bytes);
}

Task<Result<std::vector<uint8_t>>> PeerCaller::FetchMap(NodeId node, Instant deadline) {
  uint32_t room = kMapRoomFirst;
  for (int attempt = 0; attempt < kMapAttemptsMax; ++attempt) {
    std::vector<uint8_t> bytes(room);
    const peer::GetMapRequest request{.room = room};
    Order order{.node = node, .target = {}, .verb = peer::Verb::kGetMap};
    order.message = peer::Encode(request).value();
    order.into = bytes;
    order.deadline = deadline;
    order.repeat = Repeat::kOnce;
    const Result<Answer> answer = co_await Ask(std::move(order));
    if (!answer.ok()) co_return answer.status();
    const auto size = peer::ParseAnswer<peer::MapSize>(answer.value().fields());
    if (!size.ok()) co_return size.status();
    if (answer.value().payload_size == size.value().bytes) {
      bytes.resize(size.value().bytes);
      co_return std::move(bytes);
    }
    room = size.value().bytes;
  }
  co_return Status(Code::kUnavailable, "the map of a node changes faster than it can be read");
}

}  // namespace cairn::kv
