// A request can be cancelled at any point; what it was refused for is then dropped.
#include "kvstore/rdma/rdma_incoming.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace cairn::kv {
namespace {

constexpr int kBacklog = 128;
constexpr size_t kConnectionsMax = 4096;
// Of requests of one source whose payload waits for memory: they have been read already.
constexpr uint64_t kWaitingBytesMax = 4 * kRdmaFrameSizeMax;

RdmaWork::LocalPiece Local(const HeldMemory& held, uint64_t size) {
  return {.address = held.address(), .size = size, .key = held.local_key()};
}

}  // namespace

struct RdmaIncoming::Connection {
  Connection(const RdmaParts& parts, uint64_t id, rdma_cm_id& requested,
             const rdma_conn_param& asked)
      : rdma(parts, id, requested, asked), greeted(parts.poller.loop()) {}

  RdmaConnection rdma;
  bool usable = false;
  Event greeted;  // Connecting and the hello are over, one way or the other.
  std::map<uint64_t, Request*> requests;  // Each until its answer or refusal is on its way.
};

struct RdmaIncoming::Request {
  Request(uint64_t connection, NodeId node, RdmaFrame asked)
      : connection_id(connection), source(node), frame(std::move(asked)) {}

  const uint64_t connection_id;
  const NodeId source;
  RdmaFrame frame;
  std::vector<RdmaWork*> works;  // That use the caller's memory, and what is to follow.
  bool refused = false;
};

RdmaIncoming::RdmaIncoming(const RdmaParts& parts)
    : parts_(parts), complaints_(parts.log, parts.stats),
      admission_(parts.poller.loop(), {.source_bytes_max = parts.options.peer_bytes_max,
                                       .bytes_max = parts.options.bytes_max}),
      gate_(parts.poller.loop()) {
  parts_.events.SetOnRequest([this](rdma_cm_id& id, const rdma_conn_param& asked) {
    OnConnect(id, asked);
  });
}

RdmaIncoming::~RdmaIncoming() {
  for (rdma_cm_id* const listener : listeners_) rdma_destroy_id(listener);
}

Result<uint16_t> RdmaIncoming::Listen(SocketAddress address) {
  const auto fail = [&address](int error) {
    return Status(error == EADDRINUSE ? Code::kConflict : Code::kInvalid,
                  "cannot listen for RDMA at " + address.text() + ": " + std::strerror(error));
  };
  rdma_cm_id* listener = nullptr;
  if (rdma_create_id(parts_.events.channel(), &listener, nullptr, RDMA_PS_TCP) != 0) {
    return fail(errno);
  }
  listeners_.push_back(listener);
  if (rdma_bind_addr(listener, &address.address()) != 0) return fail(errno);
  if (rdma_listen(listener, kBacklog) != 0) return fail(errno);
  if (listener->verbs != nullptr) {
    KV_ASSIGN_OR_RETURN(RdmaDevice* const device, parts_.devices.Of(*listener->verbs));
    parts_.log.Info("RDMA at " + address.text() + ": " +
                    device->Describe(listener->port_num,
                                     listener->route.addr.addr.ibaddr.sgid) +
                    "; taken because it has that address");
  }
  return ntohs(rdma_get_src_port(listener));
}

void RdmaIncoming::Serve(Network::Handler handler) {
  KV_CHECK(handler_ == nullptr);
  handler_ = std::move(handler);
}

void RdmaIncoming::Probe() {
  for (auto& [id, connection] : connections_) {
    if (connection->usable) connection->rdma.queue().Probe();
  }
}

Task<void> RdmaIncoming::Stop() {
  stopping_ = true;
  for (rdma_cm_id* const listener : std::exchange(listeners_, {})) rdma_destroy_id(listener);
  for (auto& [id, connection] : connections_) connection->rdma.Close();
  co_await gate_.Close();
}

// --- Connections --------------------------------------------------------------------------------

void RdmaIncoming::OnConnect(rdma_cm_id& id, const rdma_conn_param& asked) {
  if (stopping_ || connections_.size() >= kConnectionsMax) {
    id.context = nullptr;
    rdma_destroy_id(&id);
    return;
  }
  gate_.Hold(RunConnection(
      std::make_unique<Connection>(parts_, next_connection_id_++, id, asked)));
}

Task<void> RdmaIncoming::RunConnection(std::unique_ptr<Connection> connection) {
  RdmaConnection& rdma = connection->rdma;
  connections_.emplace(rdma.id(), connection.get());
  ++parts_.stats.connections;
  const HelloOutcome hello = co_await Greet(*connection);
  complaints_.Note(rdma.peer(), hello);
  if (hello.kind == HelloOutcome::Kind::kOk &&
      co_await ReceiveRequests(*connection) == Received::kMalformed) {
    ++parts_.stats.malformed_frames;
    parts_.log.Warning("node " + std::to_string(rdma.peer().value) +
                       " sent a malformed frame: its connection is closed");
  }
  if (!rdma.fault().empty()) {
    parts_.log.Info("a connection of node " + std::to_string(rdma.peer().value) +
                    " broke: " + rdma.fault());
  }
  rdma.Close();
  connections_.erase(rdma.id());
  --parts_.stats.connections;
}

Task<HelloOutcome> RdmaIncoming::Greet(Connection& connection) {
  Task<void> guard = CloseUnlessGreeted(connection);
  const Status connected = co_await connection.rdma.Accept();
  HelloOutcome outcome;
  if (connected.ok()) {
    outcome = co_await connection.rdma.Admit();
  } else {
    outcome.kind = HelloOutcome::Kind::kEnded;
    outcome.reason = connected.message();
  }
  connection.usable = outcome.kind == HelloOutcome::Kind::kOk;
  connection.greeted.Set();
  co_await guard;
  co_return outcome;
}

Task<void> RdmaIncoming::CloseUnlessGreeted(Connection& connection) {
  const Instant until = parts_.clock.Now() + parts_.options.connect_timeout;
  co_await parts_.clock.SleepUntil(until, &connection.greeted);
  if (!connection.greeted.is_set()) connection.rdma.Close();
}

// --- Requests -----------------------------------------------------------------------------------

Task<Received> RdmaIncoming::ReceiveRequests(Connection& connection) {
  if (!admission_.Knows(connection.rdma.peer())) co_return Received::kEnded;
  std::vector<uint8_t> bytes;
  for (;;) {
    Received received = co_await connection.rdma.queue().Receive(bytes, kRdmaFrameSizeMax);
    if (received != Received::kOk) co_return received;
    Result<RdmaFrame> frame = ParseRdmaFrame(bytes);
    if (!frame.ok()) co_return Received::kMalformed;
    received = co_await TakeFrame(connection, std::move(frame).value());
    if (received != Received::kOk) co_return received;
  }
}

Task<Received> RdmaIncoming::TakeFrame(Connection& connection, RdmaFrame frame) {
  if (frame.kind == RdmaFrameKind::kCancel) {
    Cancel(connection, frame.request_id);
    co_return Received::kOk;
  }
  const bool large = frame.payload_size + frame.room.size > 0;
  const ConnectionRole role = connection.rdma.role();
  if (frame.kind != RdmaFrameKind::kRequest || large != (role == ConnectionRole::kData) ||
      connection.requests.contains(frame.request_id)) {
    co_return Received::kMalformed;
  }
  const NodeId source = connection.rdma.peer();
  const uint64_t body_size = frame.body.size();
  auto request = std::make_unique<Request>(connection.rdma.id(), source, std::move(frame));
  ++parts_.stats.requests;
  if (large) {
    // Its payload may wait for memory; a cancellation behind it must be heard meanwhile.
    Semaphore::Permit body = co_await WaitingOf(source).Acquire(body_size + sizeof(Request));
    if (connection.rdma.closing()) co_return Received::kEnded;
    connection.requests.emplace(request->frame.request_id, request.get());
    gate_.Hold(AnswerLarge(std::move(request), std::move(body)));
    co_return Received::kOk;
  }
  RequestAdmission::Permits permits = co_await admission_.Admit(source, role, body_size);
  if (connection.rdma.closing()) co_return Received::kEnded;
  connection.requests.emplace(request->frame.request_id, request.get());
  gate_.Hold(AnswerSmall(std::move(request), std::move(permits)));
  co_return Received::kOk;
}

void RdmaIncoming::Cancel(Connection& connection, uint64_t request_id) {
  const auto found = connection.requests.find(request_id);
  if (found == connection.requests.end()) return;  // The answer is on its way already.
  Request& request = *found->second;
  if (request.works.empty()) Refuse(request);
  for (RdmaWork* const work : request.works) connection.rdma.queue().Withdraw(*work);
}

RdmaIncoming::Connection* RdmaIncoming::Wanting(const Request& request) {
  const auto found = connections_.find(request.connection_id);
  const bool gone = found == connections_.end() || found->second->rdma.closing();
  return gone || request.refused ? nullptr : found->second;
}

Task<void> RdmaIncoming::AnswerSmall(std::unique_ptr<Request> request,
                                     [[maybe_unused]] RequestAdmission::Permits permits) {
  co_await Answer(*request, Bytes());
  Forget(*request);
}

Task<void> RdmaIncoming::AnswerLarge(std::unique_ptr<Request> request,
                                     [[maybe_unused]] Semaphore::Permit body) {
  const uint64_t bytes =
      request->frame.body.size() + request->frame.payload_size + request->frame.room.size;
  [[maybe_unused]] const RequestAdmission::Permits permits =
      co_await admission_.Admit(request->source, ConnectionRole::kData, bytes);
  Bytes payload;
  const bool fetched = co_await Fetch(*request, payload);
  if (fetched) co_await Answer(*request, std::move(payload));
  Forget(*request);
}

Task<bool> RdmaIncoming::Fetch(Request& request, Bytes& payload) {
  Connection* const connection = Wanting(request);
  if (connection == nullptr) co_return false;
  if (request.frame.payload_size == 0) co_return true;
  payload = Bytes(request.frame.payload_size);
  RdmaQueue& queue = connection->rdma.queue();
  Result<HeldMemory> held = queue.device().memory().Hold(payload.span(), RdmaUse::kFill);
  RdmaWork read(parts_.poller.loop(), RdmaWork::Kind::kRead);
  if (held.ok()) {
    read.local.push_back(Local(held.value(), payload.size()));
    read.remote = request.frame.payload;
    request.works.assign(1, &read);
    queue.Begin(read);
    co_await read.done;
    request.works.clear();
    if (read.ok) held.value().Deliver(payload.size());
  } else {
    parts_.log.Error(held.status().message());
  }
  if (!read.ok) Refuse(request);
  co_return read.ok;
}

Task<void> RdmaIncoming::Answer(Request& request, Bytes payload) {
  if (handler_ == nullptr || stopping_) {
    Refuse(request);
    co_return;
  }
  Network::Reply reply =
      co_await handler_(request.source, std::move(request.frame.body), std::move(payload));
  if (reply.body.size() <= kMessageBodySizeMax &&
      reply.payload.size() <= request.frame.room.size) {
    co_await Deliver(request, std::move(reply));
  } else {
    parts_.log.Error("an answer is larger than a message may be, or than its caller can take");
    Refuse(request);
  }
}

Task<void> RdmaIncoming::Deliver(Request& request, Network::Reply reply) {
  Connection* const connection = Wanting(request);
  if (connection == nullptr) co_return;
  RdmaQueue& queue = connection->rdma.queue();
  const size_t size = reply.payload.size();
  const Result<HeldMemory> held =
      queue.device().memory().Hold(std::as_const(reply.payload).span(), RdmaUse::kTake);
  if (!held.ok()) {
    parts_.log.Error(held.status().message());
    Refuse(request);
    co_return;
  }
  RdmaFrame frame;
  frame.kind = RdmaFrameKind::kAnswer;
  frame.request_id = request.frame.request_id;
  frame.payload_size = static_cast<uint32_t>(size);
  frame.body = std::move(reply.body);
  RdmaWork write(parts_.poller.loop(), RdmaWork::Kind::kWrite);
  if (size > 0) {
    write.local.push_back(Local(held.value(), size));
    write.remote.push_back(request.frame.room);
    write.remote[0].size = frame.payload_size;
  }
  RdmaWork tell(parts_.poller.loop(), RdmaWork::Kind::kSend);
  tell.frame = EncodeRdmaFrame(frame);
  // What is last in the queue is withdrawn first, so that no answer tells of half a payload.
  request.works = {&tell, &write};
  queue.Begin(write);
  queue.Begin(tell);
  co_await tell.done;
  co_await write.done;
  request.works.clear();
  if (!tell.ok) Refuse(request);
}

void RdmaIncoming::Refuse(Request& request) {
  Connection* const connection = Wanting(request);
  request.refused = true;
  if (connection == nullptr) return;
  gate_.Hold(SendRefusal(request.connection_id, request.frame.request_id));
}

void RdmaIncoming::Forget(const Request& request) {
  const auto found = connections_.find(request.connection_id);
  if (found != connections_.end()) found->second->requests.erase(request.frame.request_id);
}

Semaphore& RdmaIncoming::WaitingOf(NodeId source) {
  std::unique_ptr<Semaphore>& waiting = waiting_[source];
  if (waiting == nullptr) {
    waiting = std::make_unique<Semaphore>(parts_.poller.loop(), kWaitingBytesMax);
  }
  return *waiting;
}

Task<void> RdmaIncoming::SendRefusal(uint64_t connection_id, uint64_t request_id) {
  const auto found = connections_.find(connection_id);
  if (found == connections_.end()) co_return;
  RdmaFrame frame;
  frame.kind = RdmaFrameKind::kRefusal;
  frame.request_id = request_id;
  RdmaWork tell(parts_.poller.loop(), RdmaWork::Kind::kSend);
  tell.frame = EncodeRdmaFrame(frame);
  found->second->rdma.queue().Begin(tell);
  co_await tell.done;
}

}  // namespace cairn::kv
