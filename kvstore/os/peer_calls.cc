// A call is refused here before it has used anything.
#include "kvstore/os/peer_calls.h"

#include <algorithm>

#include "kvstore/os/request_admission.h"

namespace cairn::kv {

PeerCalls::Share::Share(PeerCalls& owner, Peer& peer, Slot& slot, uint64_t bytes)
    : owner_(&owner), peer_(peer), slot_(slot), bytes_(bytes), connection_id_(slot.connection_id) {
  ++peer_.calls;
  peer_.bytes += bytes_;
  slot_.bytes += bytes_;
  owner_->bytes_ += bytes_;
  owner_->poller_.BeginSoon();
}

PeerCalls::Share::~Share() {
  if (owner_ == nullptr) return;
  --peer_.calls;
  peer_.bytes -= bytes_;
  slot_.bytes -= bytes_;
  owner_->bytes_ -= bytes_;
  owner_->poller_.EndSoon();
}

PeerCalls::PeerCalls(Poller& poller, const Clock& clock, Limits limits, NetworkStats& stats,
                     Connect connect)
    : poller_(poller),
      clock_(clock),
      limits_(limits),
      stats_(stats),
      connect_(std::move(connect)) {}

void PeerCalls::Meet(NodeId peer) {
  Peer& met = peers_[peer];
  met.slots.resize(1 + limits_.data_connections);
  met.retry_at = Instant();
}

void PeerCalls::Abandon(NodeId peer) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  for (Slot& slot : found->second.slots) slot.connection_id = 0;
}

void PeerCalls::PutOff(NodeId id, size_t slot, uint64_t connection_id) {
  Peer& peer = peers_.at(id);
  if (peer.slots[slot].connection_id != connection_id) return;
  peer.retry_at = clock_.Now() + limits_.reconnect_after;
}

void PeerCalls::Ended(NodeId peer, size_t slot, uint64_t connection_id) {
  Slot& place = peers_.at(peer).slots[slot];
  if (place.connection_id == connection_id) place.connection_id = 0;
}

Result<PeerCalls::Share> PeerCalls::Begin(NodeId id, const Network::Outgoing& request,
                                          uint64_t room, Instant deadline) {
  ++stats_.calls;
  KV_RETURN_IF_ERROR(Check(request, deadline));
  const auto found = peers_.find(id);
  if (found == peers_.end()) return Status(Code::kUnavailable, NodeText(id) + " has no address");
  Peer& peer = found->second;
  const uint64_t bytes = request.payload_size() + room;
  if (peer.calls >= kCallsMax || peer.bytes + bytes > limits_.peer_bytes_max ||
      bytes_ + bytes > limits_.bytes_max) {
    ++stats_.calls_overloaded;
    return Status(Code::kOverloaded, "too much is on its way to " + NodeText(id));
  }
  KV_ASSIGN_OR_RETURN(Slot* const slot, SlotFor(id, peer, bytes > 0));
  return Share(*this, peer, *slot, bytes);
}

Status PeerCalls::Check(const Network::Outgoing& request, Instant deadline) const {
  if (request.body.size() > kMessageBodySizeMax ||
      request.payload_size() > kMessagePayloadSizeMax) {
    return {Code::kInvalid, "the request is larger than a message may be"};
  }
  if (deadline <= clock_.Now()) return {Code::kDeadline, "too late to call"};
  if (stopping_) return {Code::kUnavailable, "this node is stopping"};
  return {};
}

Result<PeerCalls::Slot*> PeerCalls::SlotFor(NodeId id, Peer& peer, bool has_payload) {
  size_t chosen = 0;
  if (has_payload) {
    const auto least = std::min_element(
        peer.slots.begin() + 1, peer.slots.end(),
        [](const Slot& a, const Slot& b) { return a.bytes < b.bytes; });
    chosen = static_cast<size_t>(least - peer.slots.begin());
  }
  Slot& slot = peer.slots[chosen];
  if (slot.connection_id != 0) return &slot;
  if (clock_.Now() < peer.retry_at) {
    return Status(Code::kUnavailable, NodeText(id) + " could not be reached a moment ago");
  }
  slot.connection_id = next_connection_id_++;
  const Status begun = connect_(id, chosen, slot.connection_id);
  if (begun.ok()) return &slot;
  slot.connection_id = 0;
  return begun;
}

}  // namespace cairn::kv
