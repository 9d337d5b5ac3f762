// Receives requests, hands them to the store, and sends the answers as they come.
#include "kvstore/serve/request_handler.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kvstore/base/checksum.h"

namespace cairn::kv {

using wire::Verb;

namespace {

// Bodies up to this size are read at once; larger ones share a bounded amount of memory.
constexpr uint32_t kSmallBody = 64 * kKiB;
constexpr uint64_t kLargeBodiesMax = 64 * kMiB;
static_assert(wire::kBodySizeMax <= kLargeBodiesMax);

const char* const kOverCredit = "more in flight than this client may have: see the hello";

// Places for blocks of these sizes in one buffer, each from a sector on.
template <typename Blocks, typename SizeOf>
uint64_t TotalOf(const Blocks& blocks, SizeOf size_of) {
  uint64_t total = 0;
  for (const auto& block : blocks) total += AlignUp(size_of(block), kSectorSize);
  return total;
}

}  // namespace

RequestHandler::RequestHandler(const ServerParts& parts, const ServerOptions& options,
                               ServerStats& stats)
    : parts_(parts),
      options_(options),
      stats_(stats),
      payloads_(parts.poller.loop(), options.payload_bytes_max, parts.network),
      bodies_(parts.poller.loop(), kLargeBodiesMax) {}

Task<Received> RequestHandler::Receive(Connection& connection, wire::FrameHeader header) {
  if (header.direction != wire::Direction::kRequest || header.verb == Verb::kHello) {
    co_return Received::kMalformed;
  }
  if (header.payload_size > 0 && header.verb != Verb::kPut) co_return Received::kMalformed;
  Request request{.header = header};
  if (header.budget_nanos > 0) {
    request.deadline = parts_.clock.Now() + Nanos{header.budget_nanos};
  }
  if (header.body_size > kSmallBody) {
    request.body_permit = co_await bodies_.Acquire(header.body_size);
  }
  const Received body = co_await connection.lane.ReceiveBody(request.body);
  if (body != Received::kOk) co_return body;
  ++stats_.requests;
  parts_.poller.ExpectMore(options_.spin_after_request);
  const Session& session = *connection.session;
  if (!session.HasRequests(options_.requests_max) ||
      !session.HasBytes(options_.session_bytes_max, header.payload_size)) {
    ++stats_.requests_overloaded;
    const Received skipped = co_await connection.lane.SkipPayload(header.payload_size);
    if (skipped != Received::kOk) co_return skipped;
    co_await Refuse(connection, std::move(request), Status(Code::kOverloaded, kOverCredit));
    co_return Received::kOk;
  }
  request.credit = Session::Credit(connection.session, header.payload_size);
  bool refused = false;
  if (header.verb == Verb::kPut) {
    const Received put = co_await ReceivePut(connection, request, refused);
    if (put != Received::kOk) co_return put;
  }
  if (!refused) connection.requests.Hold(Handle(connection, std::move(request)));
  co_return Received::kOk;
}

Task<Received> RequestHandler::ReceivePut(Connection& connection, Request& request,
                                          bool& refused) {
  auto parsed = wire::Parse<wire::PutRequest>(request.body);
  if (!parsed.ok()) co_return Received::kMalformed;
  request.put = std::move(parsed).value();
  request.body = {};
  const wire::PutRequest& put = *request.put;
  uint64_t bytes = 0;
  for (const wire::PutRequest::Block& block : put.blocks) bytes += block.size;
  const uint64_t payload_size = put.as_payload ? bytes : 0;
  if (request.header.payload_size != payload_size) co_return Received::kMalformed;
  if (payload_size == 0) co_return Received::kOk;
  const uint64_t total = TotalOf(put.blocks, [](const auto& block) { return block.size; });
  if (total > payloads_.largest()) {
    refused = true;
    const Received skipped = co_await connection.lane.SkipPayload(payload_size);
    if (skipped != Received::kOk) co_return skipped;
    co_await Refuse(connection, std::move(request),
                    Status(Code::kInvalid, "too many bytes in one put"));
    co_return Received::kOk;
  }
  request.payload = co_await payloads_.Take(total);
  std::vector<MutableByteSpan> places;
  uint64_t at = 0;
  for (const wire::PutRequest::Block& block : put.blocks) {
    places.push_back(request.payload.span().subspan(at, block.size));
    at += AlignUp(block.size, kSectorSize);
  }
  stats_.payload_bytes += total;
  const Received received = co_await connection.lane.ReceivePayload(std::move(places));
  stats_.payload_bytes -= total;
  co_return received;
}

bool RequestHandler::IsLate(const Request& request) {
  if (request.deadline > parts_.clock.Now()) return false;
  ++stats_.requests_late;
  return true;
}

Task<void> RequestHandler::Handle(Connection& connection, Request request) {
  ++stats_.requests_in_flight;
  if (request.header.verb == Verb::kGet) {
    co_await HandleGet(connection, std::move(request));
  } else if (IsLate(request)) {
    co_await Refuse(connection, std::move(request), Status(Code::kDeadline));
  } else {
    std::optional<Body> body = co_await Perform(connection, request);
    if (body.has_value()) {
      co_await Send(connection, request, std::move(*body), std::vector<ByteSpan>());
    } else {
      ++stats_.malformed_frames;
      connection.session->End();
    }
  }
  --stats_.requests_in_flight;
}

Task<void> RequestHandler::Refuse(Connection& connection, Request request, Status why) {
  Body body = wire::EncodeAnswer(Result<wire::Empty>(std::move(why)));
  co_await Send(connection, request, std::move(body), std::vector<ByteSpan>());
}

Task<void> RequestHandler::Send(Connection& connection, const Request& request, Body body,
                                std::vector<ByteSpan> payload) {
  wire::FrameHeader header{.verb = request.header.verb,
                           .direction = wire::Direction::kAnswer,
                           .request_id = request.header.request_id};
  for (const ByteSpan part : payload) header.payload_size += part.size();
  Lane::Outgoing outgoing{.frame = wire::EncodeFrame(header, body),
                          .payload = std::move(payload)};
  // When the client is gone nobody needs the answer.
  (void)co_await connection.lane.Send(std::move(outgoing));
}

// --- Gets ---------------------------------------------------------------------------------------

Task<void> RequestHandler::HandleGet(Connection& connection, Request request) {
  auto parsed = wire::Parse<wire::GetRequest>(request.body);
  if (!parsed.ok()) {
    ++stats_.malformed_frames;
    connection.session->End();
    co_return;
  }
  request.body = {};
  wire::GetRequest get = std::move(parsed).value();
  Status refused;
  if (!connection.session->attached.contains(get.space)) {
    refused = Status(Code::kInvalid, "attach to the namespace first");
  }
  if (!refused.ok()) {
    co_await Refuse(connection, std::move(request), std::move(refused));
  } else if (get.as_payload) {
    co_await GetAsPayload(connection, std::move(request), std::move(get));
  } else {
    co_await GetIntoRegions(connection, std::move(request), std::move(get));
  }
}

Task<void> RequestHandler::GetAsPayload(Connection& connection, Request request,
                                        wire::GetRequest get) {
  const uint64_t total = TotalOf(get.reads, [](const auto& read) { return read.capacity; });
  if (!connection.session->HasBytes(options_.session_bytes_max, total) ||
      total > payloads_.largest()) {
    ++stats_.requests_overloaded;
    co_await Refuse(connection, std::move(request), Status(Code::kOverloaded, kOverCredit));
    co_return;
  }
  request.credit.AddBytes(total);
  BufferPool::Buffer buffer = co_await payloads_.Take(std::max<uint64_t>(total, 1));
  if (IsLate(request)) {
    co_await Refuse(connection, std::move(request), Status(Code::kDeadline));
    co_return;
  }
  stats_.payload_bytes += total;
  std::vector<BlockRead> reads;
  uint64_t at = 0;
  for (const wire::GetRequest::Read& read : get.reads) {
    const uint64_t size = AlignUp(read.capacity, kSectorSize);
    reads.push_back({.id = read.id, .into = buffer.span().subspan(at, size), .may_be_lent = true});
    at += size;
  }
  const std::vector<BlockRead> kept = reads;
  std::vector<BlockReadResult> results = co_await parts_.store.Get(
      get.space, std::move(get.chain), std::move(reads), request.deadline);
  wire::GetAnswer answer;
  std::vector<ByteSpan> payload;
  for (size_t i = 0; i < results.size(); ++i) {
    BlockReadResult& result = results[i];
    if (result.status.ok() && result.size > get.reads[i].capacity) {
      result.status = Status(Code::kInvalid,
                             std::to_string(result.size).append(" bytes are needed"));
    }
    if (!result.status.ok()) {
      result.size = 0;
      result.lent = nullptr;
    }
    answer.blocks.push_back({.status = result.status,
                             .size = result.size,
                             .checksum = result.checksum});
    if (result.lent != nullptr) {
      payload.insert(payload.end(), result.lent->begin(), result.lent->end());
    } else if (result.size > 0) {
      payload.push_back(kept[i].into.first(result.size));
    }
    stats_.inline_bytes_read += result.size;
  }
  Body body = wire::EncodeAnswer(Result<wire::GetAnswer>(std::move(answer)));
  co_await Send(connection, request, std::move(body), std::move(payload));
  stats_.payload_bytes -= total;
}

Task<void> RequestHandler::GetIntoRegions(Connection& connection, Request request,
                                          wire::GetRequest get) {
  if (IsLate(request)) {
    co_await Refuse(connection, std::move(request), Status(Code::kDeadline));
    co_return;
  }
  RegionTable::Pins pins;
  std::vector<BlockRead> reads;
  for (const wire::GetRequest::Read& read : get.reads) {
    auto spans = connection.session->regions.Resolve(read.segments, pins);
    if (!spans.ok()) {
      co_await Refuse(connection, std::move(request), spans.status());
      co_return;
    }
    BlockRead& one = reads.emplace_back(BlockRead{.id = read.id});
    if (spans.value().size() == 1) {
      one.into = spans.value()[0];
    } else {
      one.scatter = std::move(spans).value();
    }
  }
  std::vector<BlockReadResult> results = co_await parts_.store.Get(
      get.space, std::move(get.chain), std::move(reads), request.deadline);
  pins.clear();
  wire::GetAnswer answer;
  for (const BlockReadResult& result : results) {
    answer.blocks.push_back({.status = result.status,
                             .size = result.size,
                             .checksum = result.checksum});
    stats_.shared_bytes_read += result.size;
  }
  Body body = wire::EncodeAnswer(Result<wire::GetAnswer>(std::move(answer)));
  co_await Send(connection, request, std::move(body), std::vector<ByteSpan>());
}

}  // namespace cairn::kv
