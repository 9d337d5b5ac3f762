// A call holds its caller's memory until no system call and no landing uses it any more.
#include "kvstore/os/tcp_outgoing.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kvstore/os/node_options.h"

namespace cairn::kv {
namespace {

// How long a call waits past its deadline for the system call that uses its memory. Then the
// connection is closed, which ends it.
constexpr Nanos kSettleGrace = Millis(10);

}  // namespace

// Lives in the frame of its Call.
struct TcpOutgoing::PendingCall {
  PendingCall(Loop& loop, MutableByteSpan memory, uint64_t connection)
      : connection_id(connection), into(memory), done(loop), sent(loop), landed(loop) {}

  const uint64_t connection_id;
  const MutableByteSpan into;
  bool wanted = true;
  bool landing = false;
  std::optional<Result<Network::Answer>> answer;
  Event done;    // There is an answer, or there will be none.
  Event sent;    // The request's memory is not used any more.
  Event landed;  // A landing that began is over.
};

TcpOutgoing::TcpOutgoing(const TcpParts& parts)
    : parts_(parts),
      complaints_(parts.log, parts.stats),
      calls_(parts.poller, parts.clock, CallLimitsOf(parts.options), parts.stats,
             [this](NodeId peer, size_t slot, uint64_t id) { return Connect(peer, slot, id); }),
      gate_(parts.poller.loop()) {}

Status TcpOutgoing::SetPeer(NodeId id, const std::string& text) {
  KV_ASSIGN_OR_RETURN(const SocketAddress address, SocketAddress::Parse(text));
  if (parts_.identity.secret.empty() && !address.is_loopback()) {
    return {Code::kInvalid, text + " is not of this machine: nodes need a cluster secret"};
  }
  addresses_[id] = address;
  calls_.Meet(id);
  return {};
}

void TcpOutgoing::CloseStalled(Instant since) {
  for (auto& [id, connection] : connections_) {
    SocketStream& stream = connection->tcp.stream();
    if (stream.closing() || stream.stalled_since() > since) continue;
    ++parts_.stats.connections_cut;
    stream.Close();
  }
}

void TcpOutgoing::Abandon(NodeId peer) {
  calls_.Abandon(peer);
  for (auto& [id, connection] : connections_) {
    if (connection->peer == peer) connection->tcp.stream().Close();
  }
}

Task<void> TcpOutgoing::Stop() {
  calls_.Stop();
  for (auto& [id, connection] : connections_) connection->tcp.stream().Close();
  co_await gate_.Close();
}

// --- Calls --------------------------------------------------------------------------------------

Task<Result<Network::Answer>> TcpOutgoing::Call(NodeId id, Network::Outgoing request,
                                                MutableByteSpan into, Instant deadline) {
  into = into.first(std::min<size_t>(into.size(), kMessagePayloadSizeMax));
  KV_CO_ASSIGN_OR_RETURN(const PeerCalls::Share share,
                         calls_.Begin(id, request, into.size(), deadline));
  PendingCall call(parts_.poller.loop(), into, share.connection_id());
  const uint64_t request_id = next_request_id_++;
  pending_.emplace(request_id, &call);
  const FrameHeader header{.payload_size = static_cast<uint32_t>(request.payload_size()),
                           .room = static_cast<uint32_t>(into.size()),
                           .request_id = request_id};
  SocketStream::Outgoing frame{.frame = EncodeFrame(header, request.body.span()),
                               .payload = std::move(request.payload),
                               .ticket = request_id};
  Task<void> sending =
      SendRequest(connections_.at(call.connection_id)->tcp, std::move(frame), call);
  co_await parts_.clock.SleepUntil(deadline, &call.done);
  pending_.erase(request_id);
  co_await Settle(call, request_id);
  co_await sending;
  if (call.answer.has_value()) co_return std::move(*call.answer);
  if (call.done.is_set()) co_return Status(Code::kUnavailable, NodeText(id) + " is not reachable");
  ++parts_.stats.calls_late;
  co_return Status(Code::kDeadline, "no answer in time from " + NodeText(id));
}

Task<void> TcpOutgoing::SendRequest(TcpConnection& connection, SocketStream::Outgoing frame,
                                    PendingCall& call) {
  co_await connection.stream().Send(std::move(frame));
  call.sent.Set();
}

Task<void> TcpOutgoing::Settle(PendingCall& call, uint64_t request_id) {
  call.wanted = false;
  const auto found = connections_.find(call.connection_id);
  if (found != connections_.end()) found->second->tcp.stream().Withdraw(request_id);
  co_await AwaitOrCut(call.sent, call.connection_id);
  if (call.landing) co_await AwaitOrCut(call.landed, call.connection_id);
}

Task<void> TcpOutgoing::AwaitOrCut(Event& free, uint64_t connection_id) {
  if (free.is_set()) co_return;
  const Instant patience = parts_.clock.Now() + kSettleGrace;
  co_await parts_.clock.SleepUntil(patience, &free);
  if (free.is_set()) co_return;
  const auto busy = connections_.find(connection_id);
  if (busy != connections_.end()) {
    ++parts_.stats.connections_cut;
    busy->second->tcp.stream().Close();
  }
  co_await free;
}

Task<Received> TcpOutgoing::ReceiveAnswers(TcpConnection& connection) {
  for (;;) {
    FrameHeader header;
    Received received = co_await connection.ReceiveHeader(header);
    if (received == Received::kOk) received = co_await TakeAnswer(connection, header);
    if (received != Received::kOk) co_return received;
  }
}

Task<Received> TcpOutgoing::TakeAnswer(TcpConnection& connection, FrameHeader header) {
  if (header.kind == FrameKind::kRequest) co_return Received::kMalformed;
  Bytes body;
  const Received received = co_await connection.ReceiveBody(body);
  if (received != Received::kOk) co_return received;
  const auto found = pending_.find(header.request_id);
  const bool late = found == pending_.end() || found->second->done.is_set();
  if (late || header.kind == FrameKind::kRefusal) {
    if (!late) found->second->done.Set();
    co_return co_await connection.stream().Skip(header.payload_size);
  }
  PendingCall& call = *found->second;
  if (call.connection_id != connection.id() || header.payload_size > call.into.size()) {
    co_return Received::kMalformed;
  }
  co_return co_await Land(connection, header, std::move(body), call);
}

Task<Received> TcpOutgoing::Land(TcpConnection& connection, FrameHeader header, Bytes body,
                                 PendingCall& call) {
  call.landing = true;
  const size_t size = header.payload_size;
  size_t filled = 0;
  bool ended = false;
  while (filled < size && call.wanted && !ended) {
    const MutableByteSpan rest = call.into.subspan(filled, size - filled);
    const size_t got = co_await connection.stream().FillSome(rest);
    ended = got == 0;
    filled += got;
  }
  // The call may be gone at the next await.
  const bool wanted = call.wanted;
  if (filled == size && wanted) {
    call.answer.emplace(Network::Answer(std::move(body), size));
    call.done.Set();
  }
  call.landed.Set();
  if (ended) co_return Received::kEnded;
  if (!wanted) ++parts_.stats.landings_diverted;
  co_return co_await connection.stream().Skip(size - filled);
}

// --- Connections --------------------------------------------------------------------------------

Status TcpOutgoing::Connect(NodeId peer, size_t slot, uint64_t connection_id) {
  KV_ASSIGN_OR_RETURN(const int socket, addresses_.at(peer).NewSocket());
  connections_[connection_id] =
      std::make_unique<Connection>(parts_, socket, connection_id, peer, slot);
  gate_.Hold(RunConnection(connection_id, peer));
  return {};
}

Task<void> TcpOutgoing::RunConnection(uint64_t id, NodeId peer) {
  Connection& connection = *connections_.at(id);  // Until EndConnection.
  ++parts_.stats.connections;
  const HelloOutcome hello = co_await Greet(connection, peer);
  const bool greeted = hello.kind == HelloOutcome::Kind::kOk;
  complaints_.Note(peer, hello);
  if (greeted) {
    ++parts_.stats.connections_made;
  } else {
    calls_.PutOff(peer, connection.slot, id);
    connection.tcp.stream().Close();
  }
  Task<void> sending = connection.tcp.stream().SendFrames();
  if (greeted && co_await ReceiveAnswers(connection.tcp) == Received::kMalformed) {
    ++parts_.stats.malformed_frames;
    parts_.log.Warning(NodeText(peer) + " sent a malformed frame: its connection is closed");
  }
  connection.tcp.stream().Close();
  co_await sending;
  EndConnection(id, peer);
}

Task<HelloOutcome> TcpOutgoing::Greet(Connection& connection, NodeId peer) {
  Task<void> guard = CloseUnlessGreeted(connection);
  SocketAddress address = addresses_.at(peer);
  const int64_t connected = co_await parts_.poller.Connect(
      connection.tcp.stream().socket(), address.address(), address.size());
  HelloOutcome outcome;
  if (connected == 0) {
    const ConnectionRole role =
        connection.slot == 0 ? ConnectionRole::kControl : ConnectionRole::kData;
    outcome = co_await connection.tcp.Introduce(parts_.identity, peer, role);
  } else {
    outcome.kind = HelloOutcome::Kind::kEnded;
    outcome.reason = "cannot connect to " + address.text() + ": " +
                     std::strerror(static_cast<int>(-connected));
  }
  connection.greeted.Set();
  co_await guard;
  co_return outcome;
}

Task<void> TcpOutgoing::CloseUnlessGreeted(Connection& connection) {
  const Instant until = parts_.clock.Now() + parts_.options.connect_timeout;
  co_await parts_.clock.SleepUntil(until, &connection.greeted);
  if (!connection.greeted.is_set()) connection.tcp.stream().Close();
}

void TcpOutgoing::EndConnection(uint64_t id, NodeId peer) {
  const auto found = connections_.find(id);
  calls_.Ended(peer, found->second->slot, id);
  connections_.erase(found);
  --parts_.stats.connections;
  for (auto& [request_id, call] : pending_) {
    if (call->connection_id == id) call->done.Set();
  }
}

}  // namespace cairn::kv
