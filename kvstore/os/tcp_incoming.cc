// Memory for a request and for its answer is set aside before the request is read.
#include "kvstore/os/tcp_incoming.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "kvstore/os/socket_address.h"

namespace cairn::kv {
namespace {

constexpr Nanos kAcceptRetry = Millis(50);

}  // namespace

struct TcpIncoming::Connection {
  Connection(const TcpParts& parts, int socket, uint64_t id)
      : tcp(parts.poller, socket, id), greeted(parts.poller.loop()) {}
  TcpConnection tcp;
  Event greeted;  // The hello is over, one way or the other.
};

TcpIncoming::TcpIncoming(const TcpParts& parts, int listener)
    : parts_(parts), listener_(listener), complaints_(parts.log, parts.stats),
      admission_(parts.poller.loop(),
                 {.source_bytes_max = parts.options.peer_bytes_max,
                  .bytes_max = parts.options.bytes_max}),
      stopping_(parts.poller.loop()), gate_(parts.poller.loop()) {
  if (listener_ < 0) return;
  port_ = SocketAddress::PortOf(listener_);
  gate_.Hold(AcceptConnections());
}

TcpIncoming::~TcpIncoming() {
  if (listener_ >= 0) parts_.poller.Close(listener_);
}

void TcpIncoming::Serve(Network::Handler handler) {
  KV_CHECK(handler_ == nullptr);
  handler_ = std::move(handler);
}

void TcpIncoming::CloseStalled(Instant since) {
  for (auto& [id, connection] : connections_) {
    SocketStream& stream = connection->tcp.stream();
    if (stream.closing() || stream.stalled_since() > since) continue;
    ++parts_.stats.connections_cut;
    stream.Close();
  }
}

Task<void> TcpIncoming::Stop() {
  stopping_.Set();
  if (listener_ >= 0) shutdown(listener_, SHUT_RDWR);
  for (auto& [id, connection] : connections_) connection->tcp.stream().Close();
  co_await gate_.Close();
}

// --- Connections --------------------------------------------------------------------------------

Task<void> TcpIncoming::AcceptConnections() {
  while (!stopping_.is_set()) {
    const int64_t accepted = co_await parts_.poller.Accept(listener_);
    if (stopping_.is_set()) {
      if (accepted >= 0) parts_.poller.Close(static_cast<int>(accepted));
      co_return;
    }
    if (accepted < 0) {
      if (accepted == -EINTR || accepted == -EAGAIN || accepted == -ECONNABORTED) continue;
      parts_.log.Error(std::string("cannot accept a connection: ") +
                       std::strerror(static_cast<int>(-accepted)));
      // Most likely too many files are open: do not spin on it.
      co_await parts_.clock.SleepUntil(parts_.clock.Now() + kAcceptRetry, &stopping_);
      continue;
    }
    if (connections_.size() >= kTcpConnectionsMax) {
      parts_.log.Warning("refused a node's connection: too many are open");
      parts_.poller.Close(static_cast<int>(accepted));
      continue;
    }
    gate_.Hold(RunConnection(static_cast<int>(accepted)));
  }
}

Task<void> TcpIncoming::RunConnection(int socket) {
  Connection connection(parts_, socket, next_connection_id_++);
  connections_.emplace(connection.tcp.id(), &connection);
  ++parts_.stats.connections;
  SocketStream& stream = connection.tcp.stream();
  Task<void> guard = CloseUnlessGreeted(connection);
  const std::string host = SocketAddress::PeerHostOf(socket);  // Before it may be gone.
  HelloOutcome hello = co_await connection.tcp.Admit(parts_.identity);
  connection.greeted.Set();
  co_await guard;
  if (hello.kind != HelloOutcome::Kind::kOk) hello.reason += " (from " + host + ")";
  complaints_.Note(connection.tcp.peer(), hello);
  if (hello.kind == HelloOutcome::Kind::kOk) {
    Task<void> sending = stream.SendFrames();
    if (co_await ReceiveRequests(connection) == Received::kMalformed) {
      ++parts_.stats.malformed_frames;
      parts_.log.Warning("node " + std::to_string(connection.tcp.peer().value) +
                         " sent a malformed frame: its connection is closed");
    }
    stream.Close();
    co_await sending;
  }
  connections_.erase(connection.tcp.id());
  --parts_.stats.connections;
}

Task<void> TcpIncoming::CloseUnlessGreeted(Connection& connection) {
  const Instant until = parts_.clock.Now() + parts_.options.connect_timeout;
  co_await parts_.clock.SleepUntil(until, &connection.greeted);
  if (!connection.greeted.is_set()) connection.tcp.stream().Close();
}

// --- Requests -----------------------------------------------------------------------------------

Task<Received> TcpIncoming::ReceiveRequests(Connection& connection) {
  for (;;) {
    FrameHeader header;
    Received received = co_await connection.tcp.ReceiveHeader(header);
    if (received == Received::kOk) received = co_await TakeRequest(connection, header);
    if (received != Received::kOk) co_return received;
  }
}

Task<Received> TcpIncoming::TakeRequest(Connection& connection, FrameHeader header) {
  const bool has_payload = header.payload_size + header.room > 0;
  if (header.kind != FrameKind::kRequest ||
      has_payload != (connection.tcp.role() == ConnectionRole::kData)) {
    co_return Received::kMalformed;
  }
  const NodeId source = connection.tcp.peer();
  if (!admission_.Knows(source)) co_return Received::kEnded;
  const uint64_t bytes = uint64_t{header.body_size} + header.payload_size + header.room;
  RequestAdmission::Permits permits =
      co_await admission_.Admit(source, connection.tcp.role(), bytes);
  Bytes body;
  Received received = co_await connection.tcp.ReceiveBody(body);
  if (received != Received::kOk) co_return received;
  Bytes payload = Bytes::Unfilled(header.payload_size);
  std::vector<MutableByteSpan> into{payload.span()};
  received = co_await connection.tcp.stream().Fill(std::move(into));
  if (received != Received::kOk || stopping_.is_set()) co_return Received::kEnded;
  ++parts_.stats.requests;
  gate_.Hold(Answer(connection.tcp.id(), header, std::move(body), std::move(payload),
                    std::move(permits)));
  co_return Received::kOk;
}

Task<void> TcpIncoming::Answer(uint64_t connection_id, FrameHeader request, Bytes body,
                               Bytes payload, [[maybe_unused]] RequestAdmission::Permits permits) {
  const auto connection = connections_.find(connection_id);
  if (handler_ == nullptr || connection == connections_.end()) {
    co_await SendRefusal(connection_id, request);
    co_return;
  }
  const NodeId source = connection->second->tcp.peer();
  Network::Reply reply = co_await handler_(source, std::move(body), std::move(payload));
  if (reply.body.size() <= kMessageBodySizeMax && reply.payload.size() <= request.room) {
    co_await SendAnswer(connection_id, request, std::move(reply));
  } else {
    parts_.log.Error("an answer is larger than a message may be, or than its caller can take");
    co_await SendRefusal(connection_id, request);
  }
}

Task<void> TcpIncoming::SendAnswer(uint64_t connection_id, FrameHeader request,
                                   Network::Reply reply) {
  const auto found = connections_.find(connection_id);
  if (found == connections_.end()) co_return;  // The caller is gone.
  const FrameHeader header{.kind = FrameKind::kAnswer,
                           .payload_size = static_cast<uint32_t>(reply.payload.size()),
                           .request_id = request.request_id};
  SocketStream::Outgoing frame{.frame = EncodeFrame(header, reply.body.span())};
  if (!reply.payload.empty()) frame.payload.emplace_back(std::as_const(reply.payload).span());
  co_await found->second->tcp.stream().Send(std::move(frame));
}

Task<void> TcpIncoming::SendRefusal(uint64_t connection_id, FrameHeader request) {
  const auto found = connections_.find(connection_id);
  if (found == connections_.end()) co_return;
  const FrameHeader header{.kind = FrameKind::kRefusal, .request_id = request.request_id};
  SocketStream::Outgoing frame{.frame = EncodeFrame(header, ByteSpan())};
  co_await found->second->tcp.stream().Send(std::move(frame));
}

}  // namespace cairn::kv
