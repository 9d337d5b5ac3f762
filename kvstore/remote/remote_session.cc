// Every call is a frame out and a frame in; whoever waits is found by the request's number.
#include "kvstore/remote/remote_session.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cairn::kv {
namespace {

using wire::Verb;

// How long a get into shared memory waits for its answer beyond its deadline: the server answers
// by then, and without an answer the session has to go.
constexpr Nanos kAnswerGrace = Seconds(2);
// Of what is left of the time until the server gives the session up.
constexpr int64_t kPingsPerTimeout = 4;

std::vector<MutableByteSpan> PlacesOf(const BlockRead& read) {
  if (!read.scatter.empty()) return read.scatter;
  return {read.into};
}

// The first `size` bytes of the places.
bool AppendPlaces(const BlockRead& read, uint64_t size, std::vector<MutableByteSpan>& places) {
  for (const MutableByteSpan place : PlacesOf(read)) {
    const uint64_t step = std::min<uint64_t>(size, place.size());
    if (step > 0) places.push_back(place.first(step));
    size -= step;
  }
  return size == 0;
}

}  // namespace

// A call that waits for its answer; lives in the task of the call.
struct RemoteSession::Pending {
  explicit Pending(Loop& loop) : done(loop) {}
  const std::vector<BlockRead>* reads = nullptr;
  std::vector<uint8_t> body;
  bool receiving = false;  // Its payload is on its way into the caller's memory.
  bool answered = false;
  Event done;
};

RemoteSession::RemoteSession(RemoteParts parts, const RemoteOptions& options, RemoteStats& stats)
    : parts_(parts),
      stats_(stats),
      address_(options.address),
      broken_(parts.poller.loop()) {}

// --- Opening ------------------------------------------------------------------------------------

Task<Result<std::shared_ptr<RemoteSession>>> RemoteSession::Open(RemoteParts parts,
                                                                 const RemoteOptions& options,
                                                                 RemoteStats& stats) {
  auto session = std::make_shared<RemoteSession>(parts, options, stats);
  const Status connected = co_await session->Connect(options);
  if (connected.ok()) co_return session;
  for (const std::unique_ptr<Lane>& lane : session->lanes_) lane->Close();
  for (Task<void>& sender : session->senders_) co_await sender;
  co_return connected;
}

Result<RemoteSession::Server> RemoteSession::ParseServer(const RemoteOptions& options) {
  constexpr std::string_view kTlsPrefix = "tls:";
  Server server;
  std::string address = options.address;
  if (address.starts_with(kTlsPrefix)) {
    address.erase(0, kTlsPrefix.size());
    server.host = address.substr(0, address.rfind(':'));
    if (server.host.starts_with('[')) server.host = server.host.substr(1, server.host.size() - 2);
    KV_ASSIGN_OR_RETURN(server.tls, TlsContext::Load(options.tls));
  }
  KV_ASSIGN_OR_RETURN(server.address, SocketAddress::Parse(address));
  return server;
}

Task<Status> RemoteSession::Connect(const RemoteOptions& options) {
  const Result<Server> server = ParseServer(options);
  if (!server.ok()) co_return server.status();
  const Instant deadline = parts_.clock.Now() + options.connect_timeout;
  wire::HelloRequest hello{.name = options.name, .admin_token = options.admin_token};
  for (uint32_t i = 0; i <= options.data_lanes; ++i) {
    Event done(parts_.poller.loop());
    const Result<int> socket = server.value().address.NewSocket();
    if (!socket.ok()) co_return socket.status();
    Task<void> guard = CloseAt(deadline, &done, socket.value());
    const Result<wire::HelloAnswer> answer =
        co_await OpenLane(server.value(), socket.value(), hello);
    done.Set();
    co_await guard;
    if (!answer.ok()) co_return answer.status();
    if (i == 0) limits_ = answer.value();
    hello.lane = wire::LaneKind::kData;
    hello.session = limits_.session;
  }
  lane_bytes_.assign(lanes_.size(), 0);
  // One request stays free for pings.
  credits_.emplace(parts_.poller.loop(), parts_.clock,
                   std::max<uint64_t>(1, uint64_t{limits_.requests_max} - 1),
                   limits_.session_bytes_max);
  co_return Status();
}

// Ends what waits for the socket when time is up.
Task<void> RemoteSession::CloseAt(Instant deadline, Event* done, int socket) {
  co_await parts_.clock.SleepUntil(deadline, done);
  if (!done->is_set()) shutdown(socket, SHUT_RDWR);
}

Task<Result<wire::HelloAnswer>> RemoteSession::OpenLane(const Server& server, int socket,
                                                        wire::HelloRequest hello) {
  SocketAddress address = server.address;
  const int64_t connected =
      co_await parts_.poller.Connect(socket, address.address(), address.size());
  if (connected < 0) {
    parts_.poller.Close(socket);
    co_return Status(Code::kUnavailable, std::string("cannot connect to ")
                                             .append(address.text())
                                             .append(": ")
                                             .append(std::strerror(static_cast<int>(-connected))));
  }
  auto lane = std::make_unique<Lane>(parts_.poller, socket);
  Lane& opened = *lane;
  if (server.tls != nullptr) {
    const Status secured =
        co_await opened.StartTls(server.tls->NewSession(TlsRole::kCaller, server.host));
    if (!secured.ok()) {
      co_return Status(secured.code(), "cannot trust " + address.text() + ": " + secured.message());
    }
  }
  Task<void> sending = opened.SendFrames();
  Result<wire::HelloAnswer> answer = co_await SayHello(opened, std::move(hello));
  if (!answer.ok()) {
    opened.Close();
    co_await sending;
    co_return answer;
  }
  lanes_.push_back(std::move(lane));
  senders_.push_back(std::move(sending));
  co_return answer;
}

Task<Result<wire::HelloAnswer>> RemoteSession::SayHello(Lane& lane, wire::HelloRequest hello) {
  const auto body = wire::Encode(hello);
  if (!body.ok()) {
    co_return Status(Code::kInvalid, "the client's name has at most 128 bytes, its token 4,096");
  }
  const wire::FrameHeader head{.verb = Verb::kHello};
  Lane::Outgoing outgoing{.frame = wire::EncodeFrame(head, body.value())};
  Task<bool> sending = lane.Send(std::move(outgoing));
  wire::FrameHeader header;
  std::vector<uint8_t> answer;
  Received received = co_await lane.ReceiveHeader(header);
  if (received == Received::kOk) received = co_await lane.ReceiveBody(answer);
  if (received != Received::kOk) lane.Close();
  (void)co_await sending;
  std::optional<Result<wire::HelloAnswer>> hello_answer;
  if (received == Received::kOk && header.verb == Verb::kHello && header.payload_size == 0) {
    hello_answer = wire::ParseAnswer<wire::HelloAnswer>(answer);
  }
  if (hello_answer.has_value()) co_return std::move(*hello_answer);
  if (received != Received::kEnded) {
    co_return Status(Code::kUnavailable, address_ + " is no cairn server");
  }
  const std::string& complaint = lane.complaint();
  co_return Status(Code::kUnavailable,
                   address_ + " ended the connection: " +
                       (complaint.empty() ? "it may expect TLS, as tls:HOST:PORT" : complaint));
}

// --- Running ------------------------------------------------------------------------------------

Task<void> RemoteSession::Run() {
  std::vector<Task<void>> tasks;
  for (const std::unique_ptr<Lane>& lane : lanes_) tasks.push_back(ReceiveAnswers(*lane));
  tasks.push_back(Ping());
  for (Task<void>& sender : senders_) tasks.push_back(std::move(sender));
  senders_.clear();
  for (Task<void>& task : tasks) co_await task;
}

void RemoteSession::Break(std::string why) {
  if (broken_.is_set()) return;
  why_ = std::string("the connection to ").append(address_).append(" broke: ").append(why);
  broken_.Set();
  for (const std::unique_ptr<Lane>& lane : lanes_) lane->Close();
  // Those whose payload is arriving hear of it when the kernel has let go of their memory.
  for (auto& [number, pending] : pending_) {
    if (!pending->receiving) pending->done.Set();
  }
}

Task<void> RemoteSession::Ping() {
  const Nanos timeout{limits_.session_timeout_nanos};
  while (!broken()) {
    const Instant next = parts_.clock.Now() + Nanos{timeout.value / kPingsPerTimeout};
    co_await parts_.clock.SleepUntil(next, &broken_);
    if (broken()) break;
    Order order{.deadline = parts_.clock.Now() + timeout};
    Lane& control = *lanes_[0];
    const Answer answer = co_await Exchange(control, std::move(order));
    if (!answer.status.ok()) Break("the server shows no sign of life");
  }
}

Task<void> RemoteSession::ReceiveAnswers(Lane& lane) {
  Received received = Received::kOk;
  while (received == Received::kOk) {
    wire::FrameHeader header;
    received = co_await lane.ReceiveHeader(header);
    if (received == Received::kOk) received = co_await TakeAnswer(lane, header);
  }
  Break(received == Received::kMalformed ? "the server sent a malformed frame"
                                         : "the server closed it");
}

Task<Received> RemoteSession::TakeAnswer(Lane& lane, wire::FrameHeader header) {
  if (header.direction != wire::Direction::kAnswer) co_return Received::kMalformed;
  std::vector<uint8_t> body;
  Received received = co_await lane.ReceiveBody(body);
  if (received != Received::kOk) co_return received;
  const auto found = pending_.find(header.request_id);
  if (found == pending_.end() || (header.payload_size > 0 && found->second->reads == nullptr)) {
    // Nobody waits for it any more.
    co_return co_await lane.SkipPayload(header.payload_size);
  }
  Pending& pending = *found->second;
  if (header.payload_size > 0) {
    const auto answer = wire::ParseAnswer<wire::GetAnswer>(body);
    if (!answer.has_value() || !answer->ok()) co_return Received::kMalformed;
    const auto& blocks = answer->value().blocks;
    std::vector<MutableByteSpan> places;
    uint64_t size = 0;
    if (blocks.size() != pending.reads->size()) co_return Received::kMalformed;
    for (size_t i = 0; i < blocks.size(); ++i) {
      size += blocks[i].size;
      const bool fits = AppendPlaces((*pending.reads)[i], blocks[i].size, places);
      if (!fits) co_return Received::kMalformed;
    }
    if (size != header.payload_size) co_return Received::kMalformed;
    pending.receiving = true;
    received = co_await lane.ReceivePayload(std::move(places));
    pending.receiving = false;
  }
  pending.answered = received == Received::kOk;
  pending.body = std::move(body);
  pending.done.Set();
  co_return received;
}

// --- Calls --------------------------------------------------------------------------------------

Lane& RemoteSession::LaneFor(const Order& order, size_t& index) {
  index = 0;
  if (order.on_data_lane && lanes_.size() > 1) {
    const auto least = std::min_element(lane_bytes_.begin() + 1, lane_bytes_.end());
    index = static_cast<size_t>(least - lane_bytes_.begin());
  }
  return *lanes_[index];
}

Task<RemoteSession::Answer> RemoteSession::Call(Order order) {
  Answer answer;
  Credits& credits = *credits_;
  const uint64_t bytes = order.credit_bytes;
  if (bytes > limits_.session_bytes_max) {
    answer.status = Status(Code::kInvalid, "more bytes than the server takes at once");
    co_return answer;
  }
  const bool granted = co_await credits.Take(bytes, order.deadline);
  if (!granted) {
    answer.status = Status(Code::kDeadline, "too many calls are in flight");
    co_return answer;
  }
  size_t index = 0;
  Lane& lane = LaneFor(order, index);
  lane_bytes_[index] += bytes;
  ++stats_.requests;
  ++stats_.requests_in_flight;
  parts_.poller.BeginSoon();
  answer = co_await Exchange(lane, std::move(order));
  parts_.poller.EndSoon();
  --stats_.requests_in_flight;
  lane_bytes_[index] -= bytes;
  credits.Give(bytes);
  co_return answer;
}

Task<RemoteSession::Answer> RemoteSession::Exchange(Lane& lane, Order order) {
  Answer answer;
  if (broken()) {
    answer.status = Status(Code::kUnavailable, why_);
    co_return answer;
  }
  const Instant now = parts_.clock.Now();
  if (order.deadline <= now) {
    answer.status = Status(Code::kDeadline);
    co_return answer;
  }
  Pending pending(parts_.poller.loop());
  pending.reads = order.reads;
  wire::FrameHeader header{.verb = order.verb, .request_id = next_request_++};
  for (const ByteSpan part : order.payload) header.payload_size += part.size();
  if (order.deadline != kNever) header.budget_nanos = (order.deadline - now).value;
  pending_.emplace(header.request_id, &pending);
  Lane::Outgoing outgoing{.frame = wire::EncodeFrame(header, order.body),
                          .payload = std::move(order.payload),
                          .descriptor = order.descriptor};
  Task<bool> sending = lane.Send(std::move(outgoing));
  const Instant limit =
      order.lands_in_regions ? order.deadline + kAnswerGrace : order.deadline;
  co_await parts_.clock.SleepUntil(limit, &pending.done);
  if (!pending.done.is_set()) {
    ++stats_.timeouts;
    if (pending.receiving && sending.done()) {
      const Instant last = limit + kAnswerGrace;
      co_await parts_.clock.SleepUntil(last, &pending.done);
    }
    // The kernel, or the server, still has the caller's memory: only the end takes it away.
    const bool held = pending.receiving || order.lands_in_regions || !sending.done();
    if (!pending.done.is_set() && held) {
      Break("no answer came in time");
      Event& done = pending.done;
      co_await done;
    }
    answer.status = Status(Code::kDeadline, "no answer came in time");
    answer.unknown = true;
  }
  (void)co_await sending;
  pending_.erase(header.request_id);
  if (pending.answered) {
    answer.status = Status();
    answer.unknown = false;
    answer.body = std::move(pending.body);
  } else if (answer.status.ok()) {
    answer.status = Status(Code::kUnavailable, why_);
    answer.unknown = true;
  }
  co_return answer;
}

}  // namespace cairn::kv
