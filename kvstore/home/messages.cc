// One list of fields for each message.
#include "kvstore/home/messages.h"

#include <utility>

#include "kvstore/wire/index_fields.h"

namespace cairn::kv::home {
namespace {

using wire::BodyReader;
using wire::BodyWriter;
using wire::For;
using wire::IndexedFields;
using wire::kIdSize;
using wire::LeaseFields;
using wire::NameFields;
using wire::StateFields;
using wire::StatusFields;
using wire::UseFields;

template <typename Io>
void Fields(Io&, For<Io, Empty>&) {}

template <typename Io>
void Fields(Io& io, For<Io, RequestHead>& head) {
  io.Enum(head.verb, kVerbLast);
  io.Int(head.epoch);
}

template <typename Io>
void Fields(Io& io, For<Io, LoadRequest>& request) {
  io.Id(request.key.space);
  io.Id(request.key.run);
  io.Enum(request.extent, home::Extent::kFiled);
  io.List(request.wanted, kRunBlocksMax, kIdSize, [&io](auto& id) { io.Id(id); });
}
template <typename Io>
void Fields(Io& io, For<Io, LoadAnswer>& answer) {
  io.Bool(answer.complete);
  io.Bool(answer.answered_by_all);
  io.List(answer.stripes, kStripesMax, kIdSize,
          [&io](auto& stripe) { IndexedFields(io, stripe); });
  io.List(answer.reasons, kRunBlocksMax, 1,
          [&io](auto& reason) { io.Enum(reason, MissReason::kUnavailable); });
}
template <typename Io>
void Fields(Io& io, For<Io, FileRequest>& request) {
  IndexedFields(io, request.stripe);
  io.Enum(request.durability, Durability::kPowerCut);
}
template <typename Io>
void Fields(Io& io, For<Io, RemoveRequest>& request) {
  NameFields(io, request.name);
  io.Enum(request.reason, MissReason::kUnavailable);
}
template <typename Io>
void Fields(Io& io, For<Io, KeepRequest>& request) {
  NameFields(io, request.name);
  io.Int(request.keep_until);
  io.Int(request.limits.quota_bytes);
  io.Int(request.limits.data_shards);
  io.Int(request.limits.parity_shards);
}
template <typename Io>
void Fields(Io& io, For<Io, UseRequest>& request) {
  io.List(request.hits, kStripesMax, kIdSize, [&io](auto& hit) {
    NameFields(io, hit.name);
    UseFields(io, hit.use);
  });
  io.List(request.lacking, kStripesMax, kIdSize, [&io](auto& stripe) { io.Id(stripe); });
}
template <typename Io>
void Fields(Io& io, For<Io, StatesRequest>& request) {
  io.List(request.stripes, kStripesMax, kIdSize, [&io](auto& stripe) { io.Id(stripe); });
}
template <typename Io>
void Fields(Io& io, For<Io, StatesAnswer>& answer) {
  io.List(answer.reports, kStripesMax, 1, [&io](auto& report) {
    io.Enum(report.kind, StripeReport::Kind::kUnknown);
    io.Bool(report.held);
    StateFields(io, report.state);
  });
}
template <typename Io>
void Fields(Io& io, For<Io, NameRequest>& request) {
  io.Id(request.stripe);
}
template <typename Io>
void Fields(Io& io, For<Io, NameAnswer>& answer) {
  NameFields(io, answer.name);
}
template <typename Io>
void Fields(Io& io, For<Io, GrantRequest>& request) {
  io.Int(request.session);
  io.Int(request.duration.value);
  io.List(request.stripes, kStripesMax, kIdSize, [&io](auto& stripe) {
    io.Id(stripe.id);
    io.Int(stripe.bytes);
  });
}
template <typename Io>
void Fields(Io& io, For<Io, GrantAnswer>& answer) {
  io.Int(answer.grant.lease.value);
  io.Int(answer.grant.left.value);
  io.List(answer.grant.gone, kStripesMax, kIdSize, [&io](auto& stripe) { io.Id(stripe); });
}
template <typename Io>
void Fields(Io& io, For<Io, RenewRequest>& request) {
  io.Int(request.session);
  io.Int(request.duration.value);
  LeaseFields(io, request.leases);
}
template <typename Io>
void Fields(Io& io, For<Io, RenewAnswer>& answer) {
  io.List(answer.codes, kLeasesMax, 1, [&io](auto& code) { io.Enum(code, Code::kConflict); });
}
template <typename Io>
void Fields(Io& io, For<Io, ReleaseRequest>& request) {
  io.Int(request.session);
  LeaseFields(io, request.leases);
}
template <typename Io>
void Fields(Io& io, For<Io, EndSessionRequest>& request) {
  io.Int(request.session);
}

}  // namespace

template <typename Message>
Bytes EncodeRequest(const RequestHead& head, const Message& message) {
  BodyWriter io;
  Fields(io, head);
  Fields(io, message);
  KV_CHECK(io.fits());
  return Bytes::CopyOf(io.bytes());
}

Result<RequestHead> ParseHead(ByteSpan request) {
  BodyReader io(request);
  RequestHead head;
  Fields(io, head);
  if (!io.fits()) return Status(Code::kInvalid, "no request to a home");
  return head;
}

template <typename Message>
Result<Message> ParseRequest(ByteSpan request) {
  BodyReader io(request);
  RequestHead head;
  Message message;
  Fields(io, head);
  Fields(io, message);
  if (!io.whole()) return Status(Code::kInvalid, "a malformed request to a home");
  return message;
}

template <typename Message>
Bytes EncodeAnswer(uint64_t epoch, const Result<Message>& answer) {
  BodyWriter io;
  io.Int(epoch);
  StatusFields(io, answer.status());
  if (answer.ok()) Fields(io, answer.value());
  KV_CHECK(io.fits());
  return Bytes::CopyOf(io.bytes());
}

template <typename Message>
Result<Message> ParseAnswer(ByteSpan answer, uint64_t& epoch) {
  BodyReader io(answer);
  Status status;
  Message message;
  io.Int(epoch);
  StatusFields(io, status);
  if (status.ok()) Fields(io, message);
  if (!io.whole()) return Status(Code::kUnavailable, "a malformed answer of a home");
  if (!status.ok()) return status;
  return message;
}

#define KV_HOME_REQUEST(Message)                                     \
  template Bytes EncodeRequest<Message>(const RequestHead&, const Message&); \
  template Result<Message> ParseRequest<Message>(ByteSpan)
#define KV_HOME_ANSWER(Message)                                      \
  template Bytes EncodeAnswer<Message>(uint64_t, const Result<Message>&); \
  template Result<Message> ParseAnswer<Message>(ByteSpan, uint64_t&)
KV_HOME_REQUEST(LoadRequest);
KV_HOME_REQUEST(FileRequest);
KV_HOME_REQUEST(RemoveRequest);
KV_HOME_REQUEST(KeepRequest);
KV_HOME_REQUEST(UseRequest);
KV_HOME_REQUEST(StatesRequest);
KV_HOME_REQUEST(NameRequest);
KV_HOME_REQUEST(GrantRequest);
KV_HOME_REQUEST(RenewRequest);
KV_HOME_REQUEST(ReleaseRequest);
KV_HOME_REQUEST(EndSessionRequest);
KV_HOME_ANSWER(Empty);
KV_HOME_ANSWER(LoadAnswer);
KV_HOME_ANSWER(StatesAnswer);
KV_HOME_ANSWER(NameAnswer);
KV_HOME_ANSWER(GrantAnswer);
KV_HOME_ANSWER(RenewAnswer);
#undef KV_HOME_REQUEST
#undef KV_HOME_ANSWER

}  // namespace cairn::kv::home
