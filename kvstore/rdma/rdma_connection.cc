// Each step of the connection manager is begun here and ends in an event.
#include "kvstore/rdma/rdma_connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace cairn::kv {

using Kind = HelloOutcome::Kind;

RdmaConnection::RdmaConnection(const RdmaParts& parts, uint64_t id) : parts_(parts), id_(id) {}

RdmaConnection::RdmaConnection(const RdmaParts& parts, uint64_t id, rdma_cm_id& requested,
                               const rdma_conn_param& asked)
    : parts_(parts), id_(id), cm_(&requested), asked_(asked) {
  requested.context = static_cast<RdmaCmHandler*>(this);
}

RdmaConnection::~RdmaConnection() {
  KV_CHECK(closing_);
  queue_.reset();
  if (cm_ != nullptr) rdma_destroy_id(cm_);
}

void RdmaConnection::Close() {
  closing_ = true;
  if (queue_ != nullptr) queue_->Close();
  if (wake_.has_value()) wake_->Set();
}

// --- The connection manager ---------------------------------------------------------------------

void RdmaConnection::OnCmEvent(rdma_cm_event_type event, int status) {
  if (event == RDMA_CM_EVENT_DISCONNECTED || event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
    Close();
    return;
  }
  events_.push_back({event, status});
  if (wake_.has_value()) wake_->Set();
}

Status RdmaConnection::Failed(const char* what) const {
  return {Code::kUnavailable, std::string(what) + ": " + std::strerror(errno)};
}

Task<Status> RdmaConnection::Expect(rdma_cm_event_type wanted, const char* what) {
  while (events_.empty() && !closing_) {
    Event& wake = wake_.emplace(parts_.poller.loop());
    co_await wake;
    wake_.reset();
  }
  if (closing_) co_return Status(Code::kUnavailable, std::string(what) + ": no answer in time");
  const CmEvent event = events_.front();
  events_.pop_front();
  if (event.kind == wanted) co_return Status();
  co_return Status(Code::kUnavailable, std::string(what) + ": " + rdma_event_str(event.kind) +
                                           " (" + std::to_string(event.status) + ")");
}

Task<Status> RdmaConnection::Connect(const SocketAddress* source, SocketAddress peer) {
  if (rdma_create_id(parts_.events.channel(), &cm_, static_cast<RdmaCmHandler*>(this),
                     RDMA_PS_TCP) != 0) {
    cm_ = nullptr;
    co_return Failed("no connection to begin with");
  }
  SocketAddress from;
  sockaddr* from_or_none = nullptr;
  if (source != nullptr) {
    from = source->WithPort(0);
    from_or_none = &from.address();
  }
  const auto limit = static_cast<int>(parts_.options.connect_timeout.value / 1'000'000);
  if (rdma_resolve_addr(cm_, from_or_none, &peer.address(), limit) != 0) {
    co_return Failed("cannot find a port towards it");
  }
  KV_CO_RETURN_IF_ERROR(
      co_await Expect(RDMA_CM_EVENT_ADDR_RESOLVED, "no port towards it is found"));
  if (rdma_resolve_route(cm_, limit) != 0) co_return Failed("cannot find a route to it");
  KV_CO_RETURN_IF_ERROR(co_await Expect(RDMA_CM_EVENT_ROUTE_RESOLVED, "no route to it is found"));
  KV_CO_RETURN_IF_ERROR(OpenQueue());
  rdma_conn_param parameters = Parameters();
  if (rdma_connect(cm_, &parameters) != 0) co_return Failed("cannot ask it to connect");
  KV_CO_RETURN_IF_ERROR(co_await Expect(RDMA_CM_EVENT_ESTABLISHED, "it does not connect"));
  queue_->Start();
  co_return Status();
}

Task<Status> RdmaConnection::Accept() {
  KV_CO_RETURN_IF_ERROR(OpenQueue());
  rdma_conn_param parameters = Parameters();
  parameters.responder_resources =
      std::min(parameters.responder_resources, asked_.responder_resources);
  parameters.initiator_depth = std::min(parameters.initiator_depth, asked_.initiator_depth);
  if (rdma_accept(cm_, &parameters) != 0) co_return Failed("cannot accept");
  KV_CO_RETURN_IF_ERROR(co_await Expect(RDMA_CM_EVENT_ESTABLISHED, "it does not connect"));
  queue_->Start();
  co_return Status();
}

Status RdmaConnection::OpenQueue() {
  KV_ASSIGN_OR_RETURN(RdmaDevice* const device, parts_.devices.Of(*cm_->verbs));
  uint8_t ack_timeout = parts_.options.ack_timeout;
  // Older kernels do not know it: packets are given up later then.
  rdma_set_option(cm_, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &ack_timeout,
                  sizeof(ack_timeout));
  KV_ASSIGN_OR_RETURN(queue_, RdmaQueue::Create(*cm_, *device, parts_.poller.loop(),
                                                parts_.stats));
  return {};
}

rdma_conn_param RdmaConnection::Parameters() const {
  rdma_conn_param parameters{};
  parameters.responder_resources = queue_->device().reads_max();
  parameters.initiator_depth = queue_->device().reads_max();
  parameters.retry_count = parts_.options.retry_count;
  parameters.rnr_retry_count = parts_.options.not_ready_retry_count;
  return parameters;
}

// --- The hello ----------------------------------------------------------------------------------

Task<bool> RdmaConnection::Say(ByteSpan message) {
  RdmaWork work(parts_.poller.loop(), RdmaWork::Kind::kSend);
  work.frame.assign(message.begin(), message.end());
  queue_->Begin(work);
  co_await work.done;
  co_return work.ok;
}

Task<Received> RdmaConnection::Hear(MutableByteSpan message) {
  std::vector<uint8_t> frame;
  const Received received = co_await queue_->Receive(frame, message.size());
  if (received != Received::kOk) co_return received;
  if (frame.size() != message.size()) co_return Received::kMalformed;
  std::copy(frame.begin(), frame.end(), message.begin());
  co_return Received::kOk;
}

namespace {

HelloOutcome Unheard(Received received) {
  return received == Received::kMalformed ? HelloOutcome::Malformed() : HelloOutcome::Ended();
}

}  // namespace

Task<HelloOutcome> RdmaConnection::Introduce(NodeId callee, ConnectionRole role) {
  const NodeIdentity& me = parts_.identity;
  peer_ = callee;
  role_ = role;
  const OfferBytes offered = MakeOffer(me, callee, role);
  if (!co_await Say(offered)) co_return HelloOutcome::Ended();
  WelcomeBytes answered{};
  const Received heard = co_await Hear(answered);
  if (heard != Received::kOk) co_return Unheard(heard);
  uint16_t version = 0;
  HelloOutcome outcome = CheckWelcome(me, offered, answered, version);
  if (outcome.kind != Kind::kOk) co_return outcome;
  const Sha256Digest proof = CallerProof(me.secret, offered, answered);
  if (!co_await Say(proof)) co_return HelloOutcome::Ended();
  co_return outcome;
}

Task<HelloOutcome> RdmaConnection::Admit() {
  const NodeIdentity& me = parts_.identity;
  OfferBytes offered{};
  Received heard = co_await Hear(offered);
  if (heard != Received::kOk) co_return Unheard(heard);
  const Result<Welcoming> welcoming = AnswerOffer(me, offered);
  if (!welcoming.ok()) co_return HelloOutcome::Malformed();
  peer_ = welcoming.value().offer.caller;
  role_ = welcoming.value().offer.role;
  const WelcomeBytes answered = welcoming.value().answer;
  if (!co_await Say(answered)) co_return HelloOutcome::Ended();
  // A refusal is on its way: it must arrive before the connection ends, so the caller ends it.
  Sha256Digest proof{};
  heard = co_await Hear(proof);
  if (welcoming.value().outcome.kind != Kind::kOk) co_return welcoming.value().outcome;
  if (heard != Received::kOk) co_return Unheard(heard);
  if (!SameSecret(proof, CallerProof(me.secret, offered, answered))) {
    co_return HelloOutcome::Unproven();
  }
  co_return HelloOutcome{};
}

}  // namespace cairn::kv
