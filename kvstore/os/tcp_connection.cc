// Hello messages have fixed sizes, so that a stranger costs no memory.
#include "kvstore/os/tcp_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <utility>

#include "kvstore/os/entropy.h"

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

Nonce DrawNonce() {
  Nonce nonce;
  FillFromKernel(nonce);
  return nonce;
}

HelloOutcome Ended(const SocketStream& stream) {
  const std::string& complaint = stream.complaint();
  return {Kind::kEnded, complaint.empty() ? "the connection ended during the hello" : complaint};
}

HelloOutcome Unproven() {
  return {Kind::kUnproven, "it does not know the secret of this cluster"};
}

HelloOutcome Malformed() { return {Kind::kMalformed, "it does not speak as a node does"}; }

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
  const HelloOffer offer{.versions = me.versions, .role = role, .caller = me.self,
                         .callee = callee, .cluster = me.cluster, .nonce = DrawNonce()};
  const OfferBytes offered = EncodeOffer(offer);
  if (!co_await stream_.SendAhead(offered)) co_return Ended(stream_);
  WelcomeBytes answered{};
  std::vector<MutableByteSpan> into{MutableByteSpan(answered)};
  if (co_await stream_.Fill(std::move(into)) != Received::kOk) co_return Ended(stream_);
  const Result<HelloWelcome> welcome = ParseWelcome(answered);
  if (!welcome.ok()) co_return Malformed();
  if (welcome.value().refusal != HelloRefusal::kNone) {
    co_return HelloOutcome{Kind::kRefused,
                           std::string(RefusalText(welcome.value().refusal))};
  }
  if (!SameSecret(welcome.value().proof, CalleeProof(me.secret, offered, answered))) {
    co_return Unproven();
  }
  version_ = welcome.value().version;
  if (welcome.value().callee != callee || version_ < me.versions.min ||
      version_ > me.versions.max) {
    co_return Malformed();
  }
  const Sha256Digest proof = CallerProof(me.secret, offered, answered);
  if (!co_await stream_.SendAhead(proof)) co_return Ended(stream_);
  co_return HelloOutcome{};
}

Task<HelloOutcome> TcpConnection::Admit(const NodeIdentity& me) {
  HelloOutcome started = co_await StartTls(me, TlsRole::kCallee);
  if (started.kind != Kind::kOk) co_return started;
  OfferBytes offered{};
  std::vector<MutableByteSpan> into{MutableByteSpan(offered)};
  if (co_await stream_.Fill(std::move(into)) != Received::kOk) co_return Ended(stream_);
  const Result<HelloOffer> offer = ParseOffer(offered);
  if (!offer.ok()) co_return Malformed();
  HelloWelcome welcome;
  welcome.refusal = Judge(me, offer.value());
  welcome.version = version_;
  welcome.callee = me.self;
  welcome.nonce = DrawNonce();
  const bool fits = welcome.refusal == HelloRefusal::kNone;
  if (fits) welcome.proof = CalleeProof(me.secret, offered, EncodeWelcome(welcome));
  const WelcomeBytes answered = EncodeWelcome(welcome);
  if (!co_await stream_.SendAhead(answered)) co_return Ended(stream_);
  if (!fits) {
    co_return HelloOutcome{Kind::kRefused, std::string(RefusalText(welcome.refusal))};
  }
  Sha256Digest proof{};
  into.assign(1, MutableByteSpan(proof));
  if (co_await stream_.Fill(std::move(into)) != Received::kOk) co_return Ended(stream_);
  if (!SameSecret(proof, CallerProof(me.secret, offered, answered))) co_return Unproven();
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

HelloRefusal TcpConnection::Judge(const NodeIdentity& me, const HelloOffer& offer) {
  peer_ = offer.caller;
  role_ = offer.role;
  const std::optional<uint16_t> version = CommonVersion(me.versions, offer.versions);
  version_ = version.value_or(0);
  if (!version.has_value()) return HelloRefusal::kVersion;
  if (offer.cluster != me.cluster) return HelloRefusal::kCluster;
  if (offer.callee != me.self) return HelloRefusal::kNode;
  return HelloRefusal::kNone;
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
  body = Bytes(body_size_);
  std::vector<MutableByteSpan> into{body.span()};
  const Received received = co_await stream_.Fill(std::move(into));
  if (received != Received::kOk) co_return received;
  co_return BodyFits(header_, body.span()) ? Received::kOk : Received::kMalformed;
}

}  // namespace cairn::kv
