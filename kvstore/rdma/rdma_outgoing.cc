// A call holds its caller's memory until the peer has answered or refused, or its connection ended.
#include "kvstore/rdma/rdma_outgoing.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kvstore/os/node_options.h"

namespace cairn::kv {
namespace {

// How long a late call waits for the peer to give its memory back. Then the connection is closed,
// which takes it back.
constexpr Nanos kSettleGrace = Millis(10);

// One piece that has the bytes of all, for a payload of very many.
void Gather(std::vector<ByteSpan>& pieces, Bytes& gathered, RdmaNetworkStats& stats) {
  std::erase_if(pieces, [](ByteSpan piece) { return piece.empty(); });
  if (pieces.size() <= kRemotePiecesMax) return;
  uint64_t size = 0;
  for (const ByteSpan piece : pieces) size += piece.size();
  gathered = Bytes(size);
  uint8_t* at = gathered.data();
  for (const ByteSpan piece : pieces) {
    std::memcpy(at, piece.data(), piece.size());
    at += piece.size();
  }
  stats.bytes_copied += size;
  pieces.assign(1, std::as_const(gathered).span());
}

RemotePiece Name(const HeldMemory& held, size_t size) {
  return {.address = held.address(), .size = static_cast<uint32_t>(size),
          .key = held.remote_key()};
}

}  // namespace

// Lives in the frame of its call.
struct RdmaOutgoing::PendingCall {
  PendingCall(Loop& loop, uint64_t request, uint64_t connection, size_t room_size)
      : id(request), connection_id(connection), room(room_size), done(loop) {}

  const uint64_t id;
  const uint64_t connection_id;
  const size_t room;
  bool lends = false;  // Memory, for the peer to read or write.
  std::optional<Network::Answer> answer;
  Event done;  // There is an answer, or there will be none: the peer uses its memory no more.
};

RdmaOutgoing::RdmaOutgoing(const RdmaParts& parts, std::vector<SocketAddress> sources)
    : parts_(parts),
      sources_(std::move(sources)),
      complaints_(parts.log, parts.stats),
      calls_(parts.poller, parts.clock, CallLimitsOf(parts.options), parts.stats,
             [this](NodeId peer, size_t slot, uint64_t id) { return Connect(peer, slot, id); }),
      gate_(parts.poller.loop()) {}

void RdmaOutgoing::SetPeer(NodeId id, std::vector<SocketAddress> addresses) {
  addresses_[id] = std::move(addresses);
  calls_.Meet(id);
}

void RdmaOutgoing::Abandon(NodeId peer) {
  calls_.Abandon(peer);
  for (auto& [id, connection] : connections_) {
    if (connection->peer == peer) connection->rdma.Close();
  }
}

void RdmaOutgoing::Probe() {
  for (auto& [id, connection] : connections_) {
    if (connection->usable) connection->rdma.queue().Probe();
  }
}

Task<void> RdmaOutgoing::Stop() {
  calls_.Stop();
  for (auto& [id, connection] : connections_) connection->rdma.Close();
  co_await gate_.Close();
}

// --- Calls --------------------------------------------------------------------------------------

Task<Result<Network::Answer>> RdmaOutgoing::Call(NodeId id, Network::Outgoing request,
                                                 MutableByteSpan into, Instant deadline) {
  into = into.first(std::min<size_t>(into.size(), kMessagePayloadSizeMax));
  KV_CO_ASSIGN_OR_RETURN(const PeerCalls::Share share,
                         calls_.Begin(id, request, into.size(), deadline));
  Result<Network::Answer> answer =
      co_await Ask(share.connection_id(), id, std::move(request), into, deadline);
  if (answer.code() == Code::kDeadline) ++parts_.stats.calls_late;
  co_return answer;
}

Task<Status> RdmaOutgoing::AwaitGreeted(uint64_t connection_id, NodeId peer, Instant deadline) {
  auto found = connections_.find(connection_id);
  if (found != connections_.end() && !found->second->usable) {
    co_await parts_.clock.SleepUntil(deadline, &found->second->greeted);
    found = connections_.find(connection_id);
    if (found != connections_.end() && !found->second->greeted.is_set()) {
      co_return Status(Code::kDeadline, "no connection in time to " + NodeText(peer));
    }
  }
  if (found != connections_.end() && found->second->usable && !found->second->rdma.closing()) {
    co_return Status();
  }
  co_return Status(Code::kUnavailable, NodeText(peer) + " is not reachable");
}

Task<Result<Network::Answer>> RdmaOutgoing::Ask(uint64_t connection_id, NodeId peer,
                                                Network::Outgoing request, MutableByteSpan into,
                                                Instant deadline) {
  KV_CO_RETURN_IF_ERROR(co_await AwaitGreeted(connection_id, peer, deadline));
  RdmaQueue& queue = connections_.at(connection_id)->rdma.queue();
  RdmaMemory& memory = queue.device().memory();
  PendingCall call(parts_.poller.loop(), next_request_id_++, connection_id, into.size());
  RdmaFrame frame;
  frame.request_id = call.id;
  frame.payload_size = static_cast<uint32_t>(request.payload_size());
  Bytes gathered;
  Gather(request.payload, gathered, parts_.stats);
  std::vector<HeldMemory> lent;
  for (const ByteSpan piece : request.payload) {
    KV_CO_ASSIGN_OR_RETURN(HeldMemory held, memory.Hold(piece, RdmaUse::kExpose));
    frame.payload.push_back(Name(held, piece.size()));
    lent.push_back(std::move(held));
  }
  KV_CO_ASSIGN_OR_RETURN(HeldMemory room, memory.Hold(into, RdmaUse::kLand));
  frame.room = Name(room, into.size());
  frame.body = std::move(request.body);
  call.lends = !lent.empty() || !into.empty();

  pending_.emplace(call.id, &call);
  RdmaWork sending(parts_.poller.loop(), RdmaWork::Kind::kSend);
  sending.frame = EncodeRdmaFrame(frame);
  queue.Begin(sending);
  co_await parts_.clock.SleepUntil(deadline, &call.done);
  co_await Settle(call, sending);
  pending_.erase(call.id);
  if (call.answer.has_value()) {
    room.Deliver(call.answer->payload_size);
    co_return std::move(*call.answer);
  }
  if (parts_.clock.Now() >= deadline) {
    co_return Status(Code::kDeadline, "no answer in time from " + NodeText(peer));
  }
  co_return Status(Code::kUnavailable, NodeText(peer) + " is not reachable");
}

Task<void> RdmaOutgoing::Settle(PendingCall& call, RdmaWork& sending) {
  const auto found = connections_.find(call.connection_id);
  if (found != connections_.end()) found->second->rdma.queue().Withdraw(sending);
  co_await AwaitOrCut(sending.done, call.connection_id);
  if (!call.lends || !sending.ok || call.done.is_set()) co_return;
  co_await Cancel(call);
}

Task<void> RdmaOutgoing::Cancel(PendingCall& call) {
  ++parts_.stats.calls_cancelled;
  const auto found = connections_.find(call.connection_id);
  if (found == connections_.end()) co_return;
  RdmaFrame frame;
  frame.kind = RdmaFrameKind::kCancel;
  frame.request_id = call.id;
  RdmaWork sending(parts_.poller.loop(), RdmaWork::Kind::kSend);
  sending.frame = EncodeRdmaFrame(frame);
  found->second->rdma.queue().Begin(sending);
  co_await AwaitOrCut(call.done, call.connection_id);
  co_await sending.done;
}

Task<void> RdmaOutgoing::AwaitOrCut(Event& free, uint64_t connection_id) {
  if (free.is_set()) co_return;
  const Instant patience = parts_.clock.Now() + kSettleGrace;
  co_await parts_.clock.SleepUntil(patience, &free);
  if (free.is_set()) co_return;
  const auto busy = connections_.find(connection_id);
  if (busy != connections_.end()) {
    ++parts_.stats.connections_cut;
    busy->second->rdma.Close();
  }
  co_await free;
}

Task<Received> RdmaOutgoing::ReceiveAnswers(RdmaConnection& connection) {
  std::vector<uint8_t> bytes;
  for (;;) {
    Received received = co_await connection.queue().Receive(bytes, kRdmaFrameSizeMax);
    if (received == Received::kOk) {
      Result<RdmaFrame> frame = ParseRdmaFrame(bytes);
      received = frame.ok() ? TakeAnswer(connection, std::move(frame).value())
                            : Received::kMalformed;
    }
    if (received != Received::kOk) co_return received;
  }
}

Received RdmaOutgoing::TakeAnswer(RdmaConnection& connection, RdmaFrame frame) {
  if (frame.kind != RdmaFrameKind::kAnswer && frame.kind != RdmaFrameKind::kRefusal) {
    return Received::kMalformed;
  }
  const auto found = pending_.find(frame.request_id);
  if (found == pending_.end() || found->second->done.is_set()) return Received::kOk;  // Late.
  PendingCall& call = *found->second;
  if (call.connection_id != connection.id() || frame.payload_size > call.room) {
    return Received::kMalformed;
  }
  if (frame.kind == RdmaFrameKind::kAnswer) {
    call.answer.emplace(std::move(frame.body), frame.payload_size);
  }
  call.done.Set();
  return Received::kOk;
}

// --- Connections --------------------------------------------------------------------------------

Status RdmaOutgoing::Connect(NodeId peer, size_t slot, uint64_t connection_id) {
  connections_[connection_id] = std::make_unique<Connection>(parts_, connection_id, peer, slot);
  gate_.Hold(RunConnection(connection_id, peer));
  return {};
}

Task<void> RdmaOutgoing::RunConnection(uint64_t id, NodeId peer) {
  Connection& connection = *connections_.at(id);  // Until EndConnection.
  ++parts_.stats.connections;
  const HelloOutcome hello = co_await Greet(connection, peer);
  complaints_.Note(peer, hello);
  if (hello.kind == HelloOutcome::Kind::kOk) {
    ++parts_.stats.connections_made;
    if (co_await ReceiveAnswers(connection.rdma) == Received::kMalformed) {
      ++parts_.stats.malformed_frames;
      parts_.log.Warning(NodeText(peer) + " sent a malformed frame: its connection is closed");
    }
  } else {
    calls_.PutOff(peer, connection.slot, id);
  }
  const std::string fault = connection.rdma.fault();
  if (!fault.empty()) parts_.log.Info("a connection to " + NodeText(peer) + " broke: " + fault);
  connection.rdma.Close();
  // Whoever waited for the hello goes first: it looks at the connection.
  co_await parts_.poller.loop().Yield();
  EndConnection(id, peer);
}

Task<HelloOutcome> RdmaOutgoing::Greet(Connection& connection, NodeId peer) {
  Task<void> guard = CloseUnlessGreeted(connection);
  const std::vector<SocketAddress>& addresses = addresses_.at(peer);
  SocketAddress address = addresses[connection.slot % addresses.size()];
  const SocketAddress* const source =
      sources_.empty() ? nullptr : &sources_[connection.slot % sources_.size()];
  const std::string name = address.text();
  const Status connected = co_await connection.rdma.Connect(source, std::move(address));
  HelloOutcome outcome;
  if (connected.ok()) {
    const ConnectionRole role =
        connection.slot == 0 ? ConnectionRole::kControl : ConnectionRole::kData;
    outcome = co_await connection.rdma.Introduce(peer, role);
  } else {
    outcome.kind = HelloOutcome::Kind::kEnded;
    outcome.reason = "cannot connect to " + name + ": " + connected.message();
  }
  connection.usable = outcome.kind == HelloOutcome::Kind::kOk;
  connection.greeted.Set();
  co_await guard;
  co_return outcome;
}

Task<void> RdmaOutgoing::CloseUnlessGreeted(Connection& connection) {
  const Instant until = parts_.clock.Now() + parts_.options.connect_timeout;
  co_await parts_.clock.SleepUntil(until, &connection.greeted);
  if (!connection.greeted.is_set()) connection.rdma.Close();
}

void RdmaOutgoing::EndConnection(uint64_t id, NodeId peer) {
  const auto found = connections_.find(id);
  calls_.Ended(peer, found->second->slot, id);
  connections_.erase(found);
  --parts_.stats.connections;
  for (auto& [request_id, call] : pending_) {
    if (call->connection_id == id) call->done.Set();
  }
}

}  // namespace cairn::kv
