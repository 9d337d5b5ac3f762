// One list of fields for each message, in both directions.
#include "kvstore/peer/peer_messages.h"

#include <utility>

#include "kvstore/peer/map_view.h"
#include "kvstore/wire/body_io.h"
#include "kvstore/wire/field_lists.h"
#include "kvstore/wire/index_fields.h"

namespace cairn::kv::peer {

using wire::BodyReader;
using wire::BodyWriter;
using wire::For;
using wire::IndexedFields;
using wire::kIdSize;
using wire::NameFields;
using wire::StateFields;
using wire::UseFields;

namespace {

bool IsKnown(Verb verb) {
  const auto number = static_cast<uint8_t>(verb);
  return (number >= 1 && number <= 6) || (number >= 16 && number <= 27) || number == 32 ||
         number == 33;
}

template <typename Io>
void SpaceFields(Io& io, For<Io, SpaceRecord>& record) {
  if constexpr (Io::kReading) {
    Result<SpaceRecord> decoded = DecodeSpace(AsText(io.Blob()));
    io.Require(decoded.ok());
    if (decoded.ok()) record = std::move(decoded).value();
  } else {
    io.Blob(AsBytes(EncodeSpace(record)));
  }
}

// `each` writes or reads the value that is there.
template <typename Io, typename T, typename Each>
void OptionalFields(Io& io, T& value, Each each) {
  bool there = value.has_value();
  io.Bool(there);
  if constexpr (Io::kReading) {
    if (there) value.emplace();
  }
  if (there) each(*value);
}

// Not inlined: where g++ 12 does, it warns of an overflow in a vector's insert that cannot be.
[[gnu::noinline]] void BytesFields(BodyWriter& io, const Bytes& bytes) { io.Blob(bytes.span()); }
void BytesFields(BodyReader& io, Bytes& bytes) { bytes = Bytes::CopyOf(io.Blob()); }

// --- Requests ---

template <typename Io>
void Fields(Io& io, For<Io, AppendRequest>& request) {
  wire::Fields(io, request.manifest);
  io.Int(request.index.value);
  io.Int(request.checksum);
}

template <typename Io>
void Fields(Io& io, For<Io, AppendRequestV1>& request) {
  wire::Fields(io, request.manifest);
  io.Int(request.index.value);
}

template <typename Io>
void Fields(Io& io, For<Io, ReadRequest>& request) {
  io.Id(request.stripe);
  io.Int(request.index.value);
  io.Int(request.offset);
  io.Int(request.size);
  OptionalFields(io, request.checksum, [&io](auto& checksum) { io.Int(checksum); });
  io.Int(request.checked_size);
  io.Require(request.size > 0 && request.size <= kMessagePayloadSizeMax);
  io.Require(request.size % kSectorSize == 0 && request.offset % kSectorSize == 0);
  io.Require(request.checked_size <= request.size);
}

template <typename Io>
void Fields(Io& io, For<Io, ReadVerifiedRequest>& request) {
  io.Id(request.stripe);
  io.Int(request.index.value);
  io.Int(request.size);
  io.Require(request.size > 0 && request.size <= kMessagePayloadSizeMax);
  io.Require(request.size % kSectorSize == 0);
}

template <typename Io>
void Fields(Io& io, For<Io, HoldsRequest>& request) {
  io.List(request.shards, kBatchMax, kIdSize, [&io](auto& shard) {
    io.Id(shard.stripe);
    io.Int(shard.index.value);
  });
}

template <typename Io>
void Fields(Io& io, For<Io, DropRequest>& request) {
  io.List(request.stripes, kBatchMax, kIdSize, [&io](auto& stripe) { io.Id(stripe); });
}

template <typename Io>
void Fields(Io&, For<Io, SyncRequest>&) {}
template <typename Io>
void Fields(Io&, For<Io, ProbeRequest>&) {}
template <typename Io>
void Fields(Io&, For<Io, Nothing>&) {}

template <typename Io>
void Fields(Io& io, For<Io, GetMapRequest>& request) {
  io.Int(request.room);
}

template <typename Io>
void Fields(Io& io, For<Io, HomeRequest>& request) {
  BytesFields(io, request.bytes);
}

template <typename Io>
void Fields(Io& io, For<Io, PublishRequest>& request) {
  IndexedFields(io, request.stripe);
  io.Enum(request.durability, Durability::kPowerCut);
}

template <typename Io>
void Fields(Io& io, For<Io, LookUpRequest>& request) {
  io.Id(request.space);
  io.Id(request.run);
}

template <typename Io>
void Fields(Io& io, For<Io, ReadFiledRequest>& request) {
  io.Id(request.stripe);
}

template <typename Io>
void Fields(Io& io, For<Io, WithdrawRequest>& request) {
  io.List(request.names, kBatchMax, 3 * kIdSize, [&io](auto& name) { NameFields(io, name); });
}

template <typename Io>
void Fields(Io& io, For<Io, TouchRequest>& request) {
  io.List(request.hits, kBatchMax, 2 * kIdSize, [&io](auto& hit) {
    io.Id(hit.first);
    UseFields(io, hit.second);
  });
}

template <typename Io>
void Fields(Io& io, For<Io, SaveUseRequest>& request) {
  io.Id(request.stripe);
  OptionalFields(io, request.use, [&io](auto& use) { UseFields(io, use); });
}

template <typename Io>
void Fields(Io& io, For<Io, SaveRemovalRequest>& request) {
  io.Id(request.stripe);
}

template <typename Io>
void Fields(Io& io, For<Io, NameOfRequest>& request) {
  io.Id(request.stripe);
}

template <typename Io>
void Fields(Io& io, For<Io, ListFiledRequest>& request) {
  OptionalFields(io, request.after, [&io](auto& stripe) { io.Id(stripe); });
  io.Int(request.limit);
  io.Require(request.limit <= kBatchMax);
}

template <typename Io>
void Fields(Io& io, For<Io, SaveSpaceRequest>& request) {
  SpaceFields(io, request.record);
}

template <typename Io>
void Fields(Io& io, For<Io, ListSpacesRequest>& request) {
  io.Int(request.first);
}

// --- Values of answers; std::vector<Status> is that of wire ---

template <typename Io>
void Fields(Io& io, For<Io, IndexedStripe>& stripe) {
  IndexedFields(io, stripe);
}

template <typename Io>
void Fields(Io& io, For<Io, std::vector<IndexedStripe>>& stripes) {
  io.List(stripes, kRunStripesMax, kIdSize, [&io](auto& stripe) { IndexedFields(io, stripe); });
}

template <typename Io>
void Fields(Io& io, For<Io, StripeName>& name) {
  NameFields(io, name);
}

template <typename Io>
void Fields(Io& io, For<Io, std::vector<TargetPort::Filed>>& list) {
  io.List(list, kBatchMax, 3 * kIdSize, [&io](auto& filed) {
    io.Id(filed.stripe);
    StateFields(io, filed.state);
  });
}

template <typename Io>
void Fields(Io& io, For<Io, SpacePage>& page) {
  io.List(page.records, wire::kSpacesMax, kIdSize, [&io](auto& record) {
    SpaceFields(io, record);
  });
  io.Bool(page.more);
}

template <typename Io>
void Fields(Io& io, For<Io, MapSize>& size) {
  io.Int(size.bytes);
  io.Require(size.bytes <= kMapSizeMax);
}

template <typename Io>
void Fields(Io& io, For<Io, HomeAnswer>& answer) {
  BytesFields(io, answer.bytes);
}

template <typename Io>
void Fields(Io& io, For<Io, AnswerHead>& head) {
  io.Int(head.epoch);
  io.Int(head.free_bytes);
  io.Int(head.queue_depth);
}

template <typename Message>
Status ParseOnly(ByteSpan fields) {
  return Parse<Message>(fields).status();
}

}  // namespace

template <typename Message>
Result<std::vector<uint8_t>> Encode(const Message& message) {
  BodyWriter io;
  Fields(io, message);
  if (!io.fits()) return Status(Code::kInvalid, "a request to a node is beyond its limits");
  return io.bytes();
}

template <typename Message>
Result<Message> Parse(ByteSpan fields) {
  BodyReader io(fields);
  Message message;
  Fields(io, message);
  if (!io.whole()) return Status(Code::kInvalid, "a node's request does not parse");
  return message;
}

Bytes EncodeRequest(const RequestHead& head, ByteSpan message) {
  FieldWriter fields;
  fields.Add(head.version);
  fields.Add(static_cast<uint8_t>(head.verb));
  fields.Add(head.epoch);
  fields.Add(static_cast<uint64_t>(head.budget_nanos));
  fields.Add(head.target.value);
  KV_CHECK(fields.size() == kRequestHeadSize);
  fields.AddBytes(message);
  return Bytes::CopyOf(fields.bytes());
}

Result<std::pair<RequestHead, ByteSpan>> ParseRequest(ByteSpan body, uint16_t version_max) {
  FieldReader fields(body);
  RequestHead head;
  head.version = fields.Take<uint16_t>();
  head.verb = static_cast<Verb>(fields.Take<uint8_t>());
  head.epoch = fields.Take<uint64_t>();
  head.budget_nanos = fields.Take<int64_t>();
  head.target.value = fields.Take<uint64_t>();
  if (!fields.fits()) return Status(Code::kInvalid, "a node's request is too short");
  if (head.version < kVersionMin || head.version > version_max) {
    return Status(Code::kConflict, "this node does not speak that version: upgrade it");
  }
  if (!IsKnown(head.verb)) return Status(Code::kInvalid, "a node asks for an unknown verb");
  return std::pair(head, body.subspan(kRequestHeadSize));
}

template <typename Value>
Bytes EncodeAnswer(const AnswerHead& head, const Result<Value>& answer) {
  BodyWriter io;
  Fields(io, head);
  wire::StatusFields(io, answer.status());
  if (answer.ok()) Fields(io, answer.value());
  if (io.fits() && io.bytes().size() <= kMessageBodySizeMax) return Bytes::CopyOf(io.bytes());
  KV_CHECK(answer.ok());  // A status always fits.
  return EncodeAnswer<Value>(head, Status(Code::kInvalid, "the answer is larger than may be sent"));
}

Result<std::pair<AnswerHead, ByteSpan>> ParseAnswerHead(ByteSpan body) {
  constexpr size_t kAnswerHeadSize = 20;
  AnswerHead head;
  BodyReader io(body);
  Fields(io, head);
  if (!io.fits()) return Status(Code::kInvalid, "a node's answer is too short");
  return std::pair(head, body.subspan(kAnswerHeadSize));
}

template <typename Value>
Result<Value> ParseAnswer(ByteSpan fields) {
  BodyReader io(fields);
  Status status;
  wire::StatusFields(io, status);
  if (io.whole() && !status.ok()) return status;
  Value value;
  if (status.ok()) Fields(io, value);
  if (!io.whole() || !status.ok()) return Status(Code::kInvalid, "a node's answer does not parse");
  return value;
}

Status ParseAny(const RequestHead& head, ByteSpan fields) {
  switch (head.verb) {
    case Verb::kAppend:
      return head.version < kVersionOfChecksums ? ParseOnly<AppendRequestV1>(fields)
                                                : ParseOnly<AppendRequest>(fields);
    case Verb::kRead: return ParseOnly<ReadRequest>(fields);
    case Verb::kReadVerified: return ParseOnly<ReadVerifiedRequest>(fields);
    case Verb::kHolds: return ParseOnly<HoldsRequest>(fields);
    case Verb::kDrop: return ParseOnly<DropRequest>(fields);
    case Verb::kSync: return ParseOnly<SyncRequest>(fields);
    case Verb::kPublish: return ParseOnly<PublishRequest>(fields);
    case Verb::kLookUp: return ParseOnly<LookUpRequest>(fields);
    case Verb::kReadFiled: return ParseOnly<ReadFiledRequest>(fields);
    case Verb::kWithdraw: return ParseOnly<WithdrawRequest>(fields);
    case Verb::kTouch: return ParseOnly<TouchRequest>(fields);
    case Verb::kSaveUse: return ParseOnly<SaveUseRequest>(fields);
    case Verb::kSaveRemoval: return ParseOnly<SaveRemovalRequest>(fields);
    case Verb::kNameOf: return ParseOnly<NameOfRequest>(fields);
    case Verb::kListFiled: return ParseOnly<ListFiledRequest>(fields);
    case Verb::kSaveSpace: return ParseOnly<SaveSpaceRequest>(fields);
    case Verb::kListSpaces: return ParseOnly<ListSpacesRequest>(fields);
    case Verb::kProbe: return ParseOnly<ProbeRequest>(fields);
    case Verb::kGetMap: return ParseOnly<GetMapRequest>(fields);
    case Verb::kAskHome: return ParseOnly<HomeRequest>(fields);
  }
  return {Code::kInvalid, "no such verb"};
}

#define CAIRN_PEER_REQUEST(Message)                                          \
  template Result<std::vector<uint8_t>> Encode<Message>(const Message&);     \
  template Result<Message> Parse<Message>(ByteSpan)
CAIRN_PEER_REQUEST(AppendRequest);
CAIRN_PEER_REQUEST(AppendRequestV1);
CAIRN_PEER_REQUEST(ReadRequest);
CAIRN_PEER_REQUEST(ReadVerifiedRequest);
CAIRN_PEER_REQUEST(HoldsRequest);
CAIRN_PEER_REQUEST(DropRequest);
CAIRN_PEER_REQUEST(SyncRequest);
CAIRN_PEER_REQUEST(PublishRequest);
CAIRN_PEER_REQUEST(LookUpRequest);
CAIRN_PEER_REQUEST(ReadFiledRequest);
CAIRN_PEER_REQUEST(WithdrawRequest);
CAIRN_PEER_REQUEST(TouchRequest);
CAIRN_PEER_REQUEST(SaveUseRequest);
CAIRN_PEER_REQUEST(SaveRemovalRequest);
CAIRN_PEER_REQUEST(NameOfRequest);
CAIRN_PEER_REQUEST(ListFiledRequest);
CAIRN_PEER_REQUEST(SaveSpaceRequest);
CAIRN_PEER_REQUEST(ListSpacesRequest);
CAIRN_PEER_REQUEST(ProbeRequest);
CAIRN_PEER_REQUEST(GetMapRequest);
CAIRN_PEER_REQUEST(HomeRequest);
#undef CAIRN_PEER_REQUEST

#define CAIRN_PEER_ANSWER(Value)                                                 \
  template Bytes EncodeAnswer<Value>(const AnswerHead&, const Result<Value>&);   \
  template Result<Value> ParseAnswer<Value>(ByteSpan)
CAIRN_PEER_ANSWER(Nothing);
CAIRN_PEER_ANSWER(MapSize);
CAIRN_PEER_ANSWER(HomeAnswer);
CAIRN_PEER_ANSWER(SpacePage);
CAIRN_PEER_ANSWER(StripeName);
CAIRN_PEER_ANSWER(std::vector<Status>);
CAIRN_PEER_ANSWER(IndexedStripe);
CAIRN_PEER_ANSWER(std::vector<IndexedStripe>);
CAIRN_PEER_ANSWER(std::vector<TargetPort::Filed>);
#undef CAIRN_PEER_ANSWER

}  // namespace cairn::kv::peer
