// The fields of each message, and the functions over all of them.
#include "kvstore/wire/messages.h"

#include <map>
#include <utility>

#include "kvstore/wire/cluster_fields.h"
#include "kvstore/wire/field_lists.h"

namespace cairn::kv::wire {

void Fields(BodyWriter& io, const StoreStats& stats) {
  uint32_t count = 0;
  VisitStats(stats, [&count](auto&&...) { ++count; });
  io.Int(count);
  VisitStats(stats, [&io](std::string_view name, StatKind, const uint64_t& value, const char*) {
    io.Text(std::string(name), kNameMax);
    io.Int(value);
  });
}

void Fields(BodyReader& io, StoreStats& stats) {
  constexpr uint32_t kCountersMax = 4096;
  uint32_t count = 0;
  io.Int(count);
  io.Require(count <= kCountersMax);
  std::map<std::string, uint64_t> values;
  for (uint32_t i = 0; i < count && io.fits(); ++i) {
    std::string name;
    uint64_t value = 0;
    io.Text(name, kNameMax);
    io.Int(value);
    values[name] = value;
  }
  VisitStats(stats, [&values](std::string_view name, StatKind, uint64_t& value, const char*) {
    const auto found = values.find(std::string(name));
    if (found != values.end()) value = found->second;
  });
}

namespace {

template <typename Io>
void Fields(Io& io, For<Io, HelloRequest>& hello) {
  io.Int(hello.version_min);
  io.Int(hello.version_max);
  io.Int(hello.features);
  io.Enum(hello.lane, LaneKind::kData);
  io.Id(hello.session);
  io.Text(hello.name, kNameMax);
  io.Text(hello.admin_token, kSpaceTextMax);
  io.Require(hello.version_min <= hello.version_max);
}

template <typename Io>
void Fields(Io& io, For<Io, HelloAnswer>& hello) {
  io.Int(hello.version);
  io.Int(hello.features);
  io.Id(hello.session);
  io.Int(hello.requests_max);
  io.Int(hello.session_bytes_max);
  io.Int(hello.regions_max);
  io.Int(hello.region_bytes_max);
  io.Int(hello.session_timeout_nanos);
  io.Require(hello.requests_max > 0 && hello.session_timeout_nanos > 0);
}

template <typename Io>
void Fields(Io&, For<Io, Empty>&) {}

template <typename Io>
void Fields(Io& io, For<Io, Challenge>& challenge) {
  io.Fixed(challenge.nonce);
}

template <typename Io>
void Fields(Io& io, For<Io, RegisterRequest>& request) {
  io.Int(request.region);
  io.Int(request.size);
}

template <typename Io>
void Fields(Io& io, For<Io, UnregisterRequest>& request) {
  io.Int(request.region);
}

template <typename Io>
void Fields(Io& io, For<Io, LookupRequest>& request) {
  io.Id(request.space);
  ChainFields(io, request.chain);
  io.Int(request.lease.value);
}

template <typename Io>
void Fields(Io& io, For<Io, LookupEachRequest>& request) {
  io.Id(request.space);
  ChainFields(io, request.chain);
  io.Int(request.first);
  io.Int(request.lease.value);
}

template <typename Io>
void Fields(Io& io, For<Io, RenewRequest>& request) {
  LeaseFields(io, request.leases);
  io.Int(request.lease.value);
}

template <typename Io>
void Fields(Io& io, For<Io, ReleaseRequest>& request) {
  LeaseFields(io, request.leases);
}

template <typename Io>
void SegmentFields(Io& io, For<Io, std::vector<Segment>>& segments) {
  io.List(segments, kScatterMax, kIdSize, [&io](auto& segment) {
    io.Int(segment.region);
    io.Int(segment.offset);
    io.Int(segment.size);
    io.Require(segment.size > 0);
  });
}

// The segments make up the size, or there are none and the bytes are payload.
bool SegmentsFit(const std::vector<Segment>& segments, uint64_t size, bool as_payload) {
  uint64_t sum = 0;
  for (const Segment& segment : segments) sum += segment.size;
  return as_payload ? segments.empty() : sum == size;
}

template <typename Io>
void Fields(Io& io, For<Io, GetRequest>& request) {
  io.Id(request.space);
  ChainFields(io, request.chain);
  io.Bool(request.as_payload);
  size_t segments = 0;
  io.List(request.reads, kBlocksMax, kIdSize + 2 * sizeof(uint32_t), [&](auto& read) {
    io.Id(read.id);
    io.Int(read.capacity);
    SegmentFields(io, read.segments);
    io.Require(SegmentsFit(read.segments, read.capacity, request.as_payload));
    segments += read.segments.size();
  });
  io.Require(segments <= kSegmentsMax);
}

template <typename Io>
void Fields(Io& io, For<Io, GetAnswer>& answer) {
  io.List(answer.blocks, kBlocksMax, kStatusSizeMin, [&io](auto& block) {
    StatusFields(io, block.status);
    io.Int(block.size);
    io.Int(block.checksum);
  });
}

template <typename Io, typename T>
void OptionalFields(Io& io, T& value, bool& there) {
  if constexpr (!Io::kReading) there = value.has_value();
  io.Bool(there);
  if constexpr (Io::kReading) {
    if (there) value.emplace();
  }
}

template <typename Io>
void Fields(Io& io, For<Io, NamespaceOptions>& options) {
  io.Require(options.token.empty());
  ShapeFields(io, options);
  bool there = false;
  OptionalFields(io, options.proof, there);
  if (!there) return;
  auto& proof = *options.proof;
  io.Fixed(proof.nonces.client);
  io.Fixed(proof.answer);
  OptionalFields(io, proof.new_key, there);
  if (there) io.Fixed(proof.new_key->digest);
}

template <typename Io>
void Fields(Io& io, For<Io, PutRequest>& request) {
  io.Id(request.space);
  ChainFields(io, request.chain);
  io.Int(request.first);
  io.Enum(request.ack, Ack::kDurable);
  bool there = false;
  OptionalFields(io, request.ttl_seconds, there);
  if (there) io.Int(*request.ttl_seconds);
  OptionalFields(io, request.retention, there);
  if (there) io.Enum(*request.retention, RetentionKind::kRefreshed);
  io.Int(request.keep_until.value);
  io.Bool(request.as_payload);
  size_t segments = 0;
  io.List(request.blocks, kBlocksMax, kIdSize + sizeof(uint64_t), [&](auto& block) {
    io.Id(block.id);
    io.Int(block.size);
    io.Int(block.checksum);
    SegmentFields(io, block.segments);
    io.Require(block.size > 0 && block.size <= kBlockSizeMax);
    io.Require(SegmentsFit(block.segments, block.size, request.as_payload));
    segments += block.segments.size();
  });
  io.Require(segments <= kSegmentsMax);
}

template <typename Io>
void Fields(Io& io, For<Io, TouchRequest>& request) {
  io.Id(request.space);
  ChainFields(io, request.chain);
  io.Int(request.first);
  io.Int(request.keep_until.value);
}

template <typename Io>
void Fields(Io& io, For<Io, DeleteRequest>& request) {
  io.Id(request.space);
  ChainFields(io, request.chain);
  io.Int(request.first);
}

template <typename Io>
void Fields(Io& io, For<Io, NameRequest>& request) {
  io.Text(request.name, kNameMax);
}

template <typename Io>
void Fields(Io& io, For<Io, ListBlocksRequest>& request) {
  io.Id(request.space);
  io.Text(request.cursor, kTextMax);
  io.Int(request.limit);
}

template <typename Io>
void Fields(Io& io, For<Io, InspectRequest>& request) {
  io.Id(request.space);
  ChainFields(io, request.chain);
  io.Int(request.at);
  io.Bool(request.verify);
}

template <typename Io>
void Fields(Io& io, For<Io, RateRequest>& request) {
  io.Int(request.bytes_per_second);
}

template <typename Io>
void Fields(Io& io, For<Io, DrainNodeRequest>& request) {
  io.Text(request.node, kNodeTextMax);
  io.Enum(request.wanted, Draining::kYes);
}

template <typename Io>
void Fields(Io& io, For<Io, DrainTargetRequest>& request) {
  io.Int(request.target.value);
  io.Enum(request.wanted, Draining::kYes);
}

}  // namespace

template <typename Message>
Result<std::vector<uint8_t>> Encode(const Message& message) {
  BodyWriter io;
  Fields(io, message);
  if (!io.fits() || io.bytes().size() > kBodySizeMax) {
    return Status(Code::kInvalid, "beyond the limits of one request: send fewer blocks at once");
  }
  return io.bytes();
}

template <typename Message>
Result<Message> Parse(ByteSpan body) {
  BodyReader io(body);
  Message message{};
  Fields(io, message);
  if (!io.whole()) return Status(Code::kInvalid, "malformed body");
  return message;
}

template <typename Value>
std::vector<uint8_t> EncodeAnswer(const Result<Value>& answer) {
  BodyWriter io;
  StatusFields(io, answer.status());
  if (!answer.ok()) return io.bytes();
  Fields(io, answer.value());
  if (io.fits() && io.bytes().size() <= kBodySizeMax) return io.bytes();
  return EncodeAnswer<Value>(Status(Code::kOverloaded, "the answer is too large: ask for less"));
}

template <typename Value>
std::optional<Result<Value>> ParseAnswer(ByteSpan body) {
  BodyReader io(body);
  Status status;
  StatusFields(io, status);
  if (!io.fits()) return std::nullopt;
  if (!status.ok()) {
    if (!io.whole()) return std::nullopt;
    return Result<Value>(std::move(status));
  }
  Value value{};
  Fields(io, value);
  if (!io.whole()) return std::nullopt;
  return Result<Value>(std::move(value));
}

template <typename Message>
Status Try(ByteSpan body) {
  return Parse<Message>(body).status();
}

template <typename Value>
Status TryAnswer(ByteSpan body) {
  return ParseAnswer<Value>(body).has_value() ? Status() : Status(Code::kInvalid);
}

Status ParseRequest(Verb verb, ByteSpan body) {
  switch (verb) {
    case Verb::kHello: return Try<HelloRequest>(body);
    case Verb::kRegister: return Try<RegisterRequest>(body);
    case Verb::kUnregister: return Try<UnregisterRequest>(body);
    case Verb::kAttach:
    case Verb::kCreateSpace: return Try<NamespaceOptions>(body);
    case Verb::kLookup: return Try<LookupRequest>(body);
    case Verb::kLookupEach: return Try<LookupEachRequest>(body);
    case Verb::kRenew: return Try<RenewRequest>(body);
    case Verb::kRelease: return Try<ReleaseRequest>(body);
    case Verb::kGet: return Try<GetRequest>(body);
    case Verb::kPut: return Try<PutRequest>(body);
    case Verb::kTouch: return Try<TouchRequest>(body);
    case Verb::kDelete: return Try<DeleteRequest>(body);
    case Verb::kDeleteSpace: return Try<NameRequest>(body);
    case Verb::kListBlocks: return Try<ListBlocksRequest>(body);
    case Verb::kInspect: return Try<InspectRequest>(body);
    case Verb::kStartScrub:
    case Verb::kStartRepair: return Try<RateRequest>(body);
    case Verb::kDrainNode: return Try<DrainNodeRequest>(body);
    case Verb::kDrainTarget: return Try<DrainTargetRequest>(body);
    default: return Try<Empty>(body);
  }
}

Status ParseAny(Verb verb, Direction direction, ByteSpan body) {
  if (direction == Direction::kRequest) return ParseRequest(verb, body);
  switch (verb) {
    case Verb::kHello: return TryAnswer<HelloAnswer>(body);
    case Verb::kChallenge: return TryAnswer<Challenge>(body);
    case Verb::kAttach:
    case Verb::kCreateSpace: return TryAnswer<NamespaceId>(body);
    case Verb::kLookup: return TryAnswer<ChainHit>(body);
    case Verb::kLookupEach: return TryAnswer<EachHit>(body);
    case Verb::kGet: return TryAnswer<GetAnswer>(body);
    case Verb::kRenew:
    case Verb::kPut:
    case Verb::kTouch: return TryAnswer<std::vector<Status>>(body);
    case Verb::kStats: return TryAnswer<StoreStats>(body);
    case Verb::kListTargets: return TryAnswer<std::vector<TargetInfo>>(body);
    case Verb::kListSpaces: return TryAnswer<std::vector<SpaceInfo>>(body);
    case Verb::kListBlocks: return TryAnswer<BlockPage>(body);
    case Verb::kInspect: return TryAnswer<BlockDetails>(body);
    case Verb::kScrubStatus:
    case Verb::kRepairStatus: return TryAnswer<MaintenanceStatus>(body);
    case Verb::kDescribeCluster: return TryAnswer<ClusterInfo>(body);
    default: return TryAnswer<Empty>(body);
  }
}

#define KV_WIRE_REQUEST(Message)                                            \
  template Result<std::vector<uint8_t>> Encode<Message>(const Message&); \
  template Result<Message> Parse<Message>(ByteSpan)
KV_WIRE_REQUEST(HelloRequest);
KV_WIRE_REQUEST(Empty);
KV_WIRE_REQUEST(RegisterRequest);
KV_WIRE_REQUEST(UnregisterRequest);
KV_WIRE_REQUEST(NamespaceOptions);
KV_WIRE_REQUEST(LookupRequest);
KV_WIRE_REQUEST(LookupEachRequest);
KV_WIRE_REQUEST(RenewRequest);
KV_WIRE_REQUEST(ReleaseRequest);
KV_WIRE_REQUEST(GetRequest);
KV_WIRE_REQUEST(PutRequest);
KV_WIRE_REQUEST(TouchRequest);
KV_WIRE_REQUEST(DeleteRequest);
KV_WIRE_REQUEST(NameRequest);
KV_WIRE_REQUEST(ListBlocksRequest);
KV_WIRE_REQUEST(InspectRequest);
KV_WIRE_REQUEST(RateRequest);
KV_WIRE_REQUEST(DrainNodeRequest);
KV_WIRE_REQUEST(DrainTargetRequest);
#undef KV_WIRE_REQUEST

#define KV_WIRE_ANSWER(Value)                                               \
  template std::vector<uint8_t> EncodeAnswer<Value>(const Result<Value>&); \
  template std::optional<Result<Value>> ParseAnswer<Value>(ByteSpan)
KV_WIRE_ANSWER(Empty);
KV_WIRE_ANSWER(HelloAnswer);
KV_WIRE_ANSWER(Challenge);
KV_WIRE_ANSWER(NamespaceId);
KV_WIRE_ANSWER(ChainHit);
KV_WIRE_ANSWER(EachHit);
KV_WIRE_ANSWER(GetAnswer);
KV_WIRE_ANSWER(std::vector<Status>);
KV_WIRE_ANSWER(StoreStats);
KV_WIRE_ANSWER(std::vector<TargetInfo>);
KV_WIRE_ANSWER(std::vector<SpaceInfo>);
KV_WIRE_ANSWER(BlockPage);
KV_WIRE_ANSWER(BlockDetails);
KV_WIRE_ANSWER(MaintenanceStatus);
KV_WIRE_ANSWER(ClusterInfo);
#undef KV_WIRE_ANSWER

}  // namespace cairn::kv::wire
