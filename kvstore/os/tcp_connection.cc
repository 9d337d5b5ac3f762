// Hello messages have fixed sizes, so that a stranger costs no memory.
#include "kvstore/os/tcp_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <utility>

namespace cairn::kv {
namespace {

using Kind = HelloOutcome::Kind;

// A peer whose machine is gone says nothing: the kernel asks, and ends the connection.
constexpr int kSilentSeconds = 5;
constexpr int kProbeSeconds = 2;
constexpr int kProbes = 3;
constexpr int kUnheardMillis = 10'000;

void WatchPeer(int socket) {
  const auto set = [socket](int level, int name, int value) {
    setsockopt(socket, level, name, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kSilentSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kUnheardMillis);
}

// The other side may refuse our certificate after its own was taken: then TLS has a complaint.
HelloOutcome Ended(const SocketStream& stream) {
  if (stream.complaint().empty()) return HelloOutcome::Ended();
  return HelloOutcome{Kind::kUnproven, stream.complaint()};
}

// What is no offer may be the record in which TLS begins (RFC 8446, 5.1).
HelloOutcome NoOffer(const OfferBytes& bytes) {
  constexpr uint8_t kHandshake = 22;
  constexpr uint8_t kMajorVersion = 3;
  if (bytes[0] != kHandshake || bytes[1] != kMajorVersion) return HelloOutcome::Malformed();
  return HelloOutcome{Kind::kUnproven, "it speaks TLS, and this node has no certificate"};
}

}  // namespace

TcpConnection::TcpConnection(Poller& poller, int socket, uint64_t id)
    : stream_(poller, socket), id_(id) {
  WatchPeer(socket);
}

Task<HelloOutcome> TcpConnection::Introduce(const NodeIdentity& me, NodeId callee,
                                            ConnectionRole role) {
  peer_ = callee;
  role_ = role;
  HelloOutcome started = co_await StartTls(me, TlsRole::kCaller);
  if (started.kind != Kind::kOk) co_return started;
  const OfferBytes offered = MakeOffer(me, callee, role);
  if (!co_await stream_.SendAhead(offered)) co_return Ended(stream_);
  WelcomeBytes answered{};
  std::vector<MutableByteSpan> into{MutableByteSpan(answered)};
  if (co_await stream_.Fill(std::move(into)) != Received::kOk) co_return Ended(stream_);
  HelloOutcome outcome = CheckWelcome(me, offered, answered, version_);
  if (outcome.kind != Kind::kOk) co_return outcome;
  const Sha256Digest proof = CallerProof(me.secret, offered, answered);
  if (!co_await stream_.SendAhead(proof)) co_return Ended(stream_);
  co_return outcome;
}

Task<HelloOutcome> TcpConnection::Admit(const NodeIdentity& me) {
  HelloOutcome started = co_await StartTls(me, TlsRole::kCallee);
  if (started.kind != Kind::kOk) co_return started;
  OfferBytes offered{};
  std::vector<MutableByteSpan> into{MutableByteSpan(offered)};
  if (co_await stream_.Fill(std::move(into)) != Received::kOk) co_return Ended(stream_);
  Result<Welcoming> welcoming = AnswerOffer(me, offered);
  if (!welcoming.ok()) co_return NoOffer(offered);
  peer_ = welcoming.value().offer.caller;
  role_ = welcoming.value().offer.role;
  version_ = welcoming.value().version;
  const WelcomeBytes& answered = welcoming.value().answer;
  if (!co_await stream_.SendAhead(answered)) co_return Ended(stream_);
  if (welcoming.value().outcome.kind != Kind::kOk) co_return welcoming.value().outcome;
  Sha256Digest proof{};
  into.assign(1, MutableByteSpan(proof));
  if (co_await stream_.Fill(std::move(into)) != Received::kOk) co_return Ended(stream_);
  if (!SameSecret(proof, CallerProof(me.secret, offered, answered))) {
    co_return HelloOutcome::Unproven();
  }
  co_return HelloOutcome{};
}

// Which node it is, the hello's proof says: any certificate of the cluster's authority will do.
Task<HelloOutcome> TcpConnection::StartTls(const NodeIdentity& me, TlsRole role) {
  if (me.tls == nullptr) co_return HelloOutcome{};
  const Status status = co_await stream_.StartTls(me.tls->NewSession(role, ""));
  if (status.ok()) co_return HelloOutcome{};
  const bool ended = status.code() == Code::kUnavailable;
  co_return HelloOutcome{ended ? Kind::kEnded : Kind::kUnproven, status.message()};
}

Task<Received> TcpConnection::ReceiveHeader(FrameHeader& header) {
  stream_.ExpectFrame();
  std::vector<MutableByteSpan> into{MutableByteSpan(header_)};
  const Received received = co_await stream_.Fill(std::move(into));
  if (received != Received::kOk) co_return received;
  const Result<FrameHeader> parsed = ParseFrameHeader(header_);
  if (!parsed.ok()) co_return Received::kMalformed;
  header = parsed.value();
  body_size_ = header.body_size;
  co_return Received::kOk;
}

Task<Received> TcpConnection::ReceiveBody(Bytes& body) {
  body = Bytes::Unfilled(body_size_);
  std::vector<MutableByteSpan> into{body.span()};
  const Received received = co_await stream_.Fill(std::move(into));
  if (received != Received::kOk) co_return received;
  co_return BodyFits(header_, body.span()) ? Received::kOk : Received::kMalformed;
}

}  // namespace cairn::kv
