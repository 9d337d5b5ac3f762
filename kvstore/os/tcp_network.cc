// Matches answers with calls, and keeps the connections.
#include "kvstore/os/tcp_network.h"

#include <cerrno>
#include <cstring>
#include <utility>

namespace cairn::kv {

Result<std::unique_ptr<TcpNetwork>> TcpNetwork::Create(Poller& poller, Clock& clock, Log& log,
                                                       const TcpNetworkOptions& options) {
  int listener = -1;
  if (!options.listen.empty()) {
    KV_ASSIGN_OR_RETURN(const SocketAddress address, SocketAddress::Parse(options.listen));
    KV_ASSIGN_OR_RETURN(listener, address.Listen());
  }
  return std::unique_ptr<TcpNetwork>(
      new TcpNetwork(poller, clock, log, options.self, listener));
}

TcpNetwork::TcpNetwork(Poller& poller, Clock& clock, Log& log, NodeId self, int listener)
    : poller_(poller), clock_(clock), log_(log), self_(self), listener_(listener),
      stopping_(poller.loop()), answering_(poller.loop(), kRequestsAnsweredAtOnceMax),
      gate_(poller.loop()) {
  if (listener_ < 0) return;
  port_ = SocketAddress::PortOf(listener_);
  gate_.Hold(AcceptConnections());
}

TcpNetwork::~TcpNetwork() {
  KV_CHECK(gate_.closed());
  if (listener_ >= 0) poller_.Close(listener_);
}

Status TcpNetwork::SetPeer(NodeId peer, const std::string& address) {
  KV_ASSIGN_OR_RETURN(peers_[peer].address, SocketAddress::Parse(address));
  return {};
}

Task<Result<Bytes>> TcpNetwork::Call(NodeId target, Bytes request, Instant deadline) {
  if (request.size() > kMessageSizeMax) {
    co_return Status(Code::kInvalid, "request is larger than a message may be");
  }
  if (deadline <= clock_.Now()) co_return Status(Code::kDeadline, "too late to call");
  KV_CO_ASSIGN_OR_RETURN(TcpConnection* const connection, ConnectionTo(target));
  const uint64_t request_id = next_request_id_++;
  const uint64_t connection_id = connection->id();
  FrameHeader header;
  header.source = self_;
  header.payload_size = static_cast<uint32_t>(request.size());
  header.request_id = request_id;
  if (!connection->Enqueue(Frame(header, std::move(request)))) {
    co_return Status(Code::kOverloaded, "too much waits to be sent to the peer");
  }
  PendingCall pending(poller_.loop(), connection_id);
  pending_.emplace(request_id, &pending);
  poller_.BeginSoon();
  co_await clock_.SleepUntil(deadline, &pending.done);
  poller_.EndSoon();
  pending_.erase(request_id);
  if (!pending.done.is_set()) {
    const auto found = connections_.find(connection_id);
    if (found != connections_.end()) found->second.stream->Withdraw(request_id);
    co_return Status(Code::kDeadline, "no answer in time");
  }
  if (!pending.answer.has_value()) co_return Status(Code::kUnavailable, "peer is not reachable");
  co_return std::move(*pending.answer);
}

void TcpNetwork::Serve(Handler handler) {
  KV_CHECK(handler_ == nullptr);
  handler_ = std::move(handler);
}

Task<void> TcpNetwork::Stop() {
  stopping_.Set();
  if (listener_ >= 0) shutdown(listener_, SHUT_RDWR);
  for (auto& [id, connection] : connections_) connection.stream->Close();
  co_await gate_.Close();
}

Result<TcpConnection*> TcpNetwork::ConnectionTo(NodeId target) {
  const auto peer = peers_.find(target);
  if (peer == peers_.end() || peer->second.address.size() == 0) {
    return Status(Code::kUnavailable, "node " + std::to_string(target.value) + " has no address");
  }
  if (stopping_.is_set()) return Status(Code::kUnavailable, "this node is stopping");
  uint64_t& id = peer->second.connection_id;
  if (id == 0) {
    KV_ASSIGN_OR_RETURN(const int socket, peer->second.address.NewSocket());
    id = AddConnection(socket, target);
    gate_.Hold(RunOutgoing(id, peer->second.address));
  }
  return connections_.at(id).stream.get();
}

uint64_t TcpNetwork::AddConnection(int socket, std::optional<NodeId> peer) {
  const uint64_t id = next_connection_id_++;
  connections_[id] = Connection{std::make_unique<TcpConnection>(poller_, socket, id), peer};
  return id;
}

Task<void> TcpNetwork::RunOutgoing(uint64_t id, SocketAddress address) {
  TcpConnection& stream = *connections_.at(id).stream;  // Until EndConnection.
  const int64_t connected =
      co_await poller_.Connect(stream.socket(), address.address(), address.size());
  if (connected == 0) {
    co_await stream.Run(*this);
  } else {
    log_.Debug("cannot connect to " + address.text() + ": " +
               std::strerror(static_cast<int>(-connected)));
  }
  EndConnection(id);
}

Task<void> TcpNetwork::RunIncoming(uint64_t id) {
  co_await connections_.at(id).stream->Run(*this);
  EndConnection(id);
}

void TcpNetwork::EndConnection(uint64_t id) {
  const auto found = connections_.find(id);
  if (found->second.peer.has_value()) peers_[*found->second.peer].connection_id = 0;
  connections_.erase(found);
  for (auto& [request_id, pending] : pending_) {
    if (pending->connection_id == id) pending->done.Set();
  }
}

Task<void> TcpNetwork::AcceptConnections() {
  while (!stopping_.is_set()) {
    const int64_t accepted = co_await poller_.Accept(listener_);
    if (stopping_.is_set()) {
      if (accepted >= 0) poller_.Close(static_cast<int>(accepted));
      co_return;
    }
    if (accepted < 0) {
      if (accepted == -EINTR || accepted == -EAGAIN || accepted == -ECONNABORTED) continue;
      log_.Error(std::string("cannot accept a connection: ") +
                 std::strerror(static_cast<int>(-accepted)));
      // Most likely too many files are open: do not spin on it.
      co_await clock_.SleepUntil(clock_.Now() + Millis(50), &stopping_);
      continue;
    }
    if (connections_.size() >= kConnectionsMax) {
      log_.Warning("refused a connection: too many are open");
      poller_.Close(static_cast<int>(accepted));
      continue;
    }
    gate_.Hold(RunIncoming(AddConnection(static_cast<int>(accepted), std::nullopt)));
  }
}

Task<bool> TcpNetwork::OnFrame(uint64_t connection_id, Frame frame) {
  const bool we_called = connections_.at(connection_id).peer.has_value();
  if (we_called == (frame.header.kind == FrameKind::kRequest)) co_return false;
  if (!we_called) {
    // Nothing more is read from this peer while too many requests are being answered.
    Semaphore::Permit permit = co_await answering_.Acquire(1);
    if (!gate_.closed()) gate_.Hold(Answer(connection_id, std::move(frame), std::move(permit)));
    co_return true;
  }
  const auto found = pending_.find(frame.header.request_id);
  if (found == pending_.end()) co_return true;  // Too late: its caller has given up.
  if (found->second->connection_id != connection_id) co_return false;
  if (frame.header.kind == FrameKind::kAnswer) found->second->answer = std::move(frame.payload);
  found->second->done.Set();
  co_return true;
}

void TcpNetwork::OnMalformed(uint64_t connection_id) {
  ++malformed_frames_;
  log_.Warning("connection " + std::to_string(connection_id) +
               " sent a malformed frame and is closed");
}

Task<void> TcpNetwork::Answer(uint64_t connection_id, Frame request, Semaphore::Permit permit) {
  FrameHeader header;
  header.source = self_;
  header.request_id = request.header.request_id;
  header.kind = FrameKind::kRefusal;
  Bytes answer;
  if (handler_ != nullptr) {
    answer = co_await handler_(request.header.source, std::move(request.payload));
    if (answer.size() <= kMessageSizeMax) {
      header.kind = FrameKind::kAnswer;
      header.payload_size = static_cast<uint32_t>(answer.size());
    } else {
      log_.Error("an answer is larger than a message may be");
      answer = Bytes();
    }
  }
  permit.Release();
  const auto found = connections_.find(connection_id);
  if (found == connections_.end()) co_return;  // The caller is gone.
  // A peer that does not take its answers loses the connection.
  if (!found->second.stream->Enqueue(Frame(header, std::move(answer)))) {
    found->second.stream->Close();
  }
}

}  // namespace cairn::kv
