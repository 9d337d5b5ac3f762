// One function for each verb, between the parser and the target.
#include "kvstore/peer/peer_service.h"

#include <algorithm>
#include <utility>

#include "kvstore/base/checksum.h"

namespace cairn::kv {

using peer::Verb;

namespace {

constexpr Nanos kBudgetMax = Seconds(3600);

}  // namespace

struct PeerService::Work {
  NodeId source;
  TargetPort* target = nullptr;  // Null only for kGetMap and kAskHome.
  uint64_t epoch = 0;            // Of the source's map.
  uint16_t version = 0;          // Of its message.
  Instant deadline;
  Bytes payload;
};

// Counts the bytes of a request in work.
class PeerService::Share {
 public:
  Share(PeerService& owner, NodeId source, uint64_t bytes)
      : owner_(owner), source_(source), bytes_(bytes) {
    owner_.bytes_ += bytes_;
    owner_.source_bytes_[source_] += bytes_;
  }
  ~Share() {
    owner_.bytes_ -= bytes_;
    const auto source = owner_.source_bytes_.find(source_);
    source->second -= bytes_;
    if (source->second == 0) owner_.source_bytes_.erase(source);
  }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

 private:
  PeerService& owner_;
  const NodeId source_;
  const uint64_t bytes_;
};

PeerService::PeerService(Clock& clock, MapView& map, FindTarget find_target,
                         PeerServiceOptions options)
    : clock_(clock), map_(map), find_target_(std::move(find_target)), options_(options) {}

PeerService::~PeerService() { KV_CHECK(bytes_ == 0); }

void PeerService::Serve(Network& network) {
  network.Serve([this](NodeId source, Bytes body, Bytes payload) {
    return Answer(source, std::move(body), std::move(payload));
  });
}

Task<Network::Reply> PeerService::Answer(NodeId source, Bytes body, Bytes payload) {
  ++stats_.requests;
  const auto parsed = peer::ParseRequest(std::as_const(body).span(), options_.version_max);
  if (!parsed.ok()) {
    ++stats_.requests_malformed;
    co_return SayDone(nullptr, parsed.status());
  }
  const auto& [head, fields] = parsed.value();
  if (head.epoch > map_.epoch()) map_.OnNewer(source, head.epoch);
  Work work;
  work.source = source;
  work.epoch = head.epoch;
  work.version = head.version;
  work.deadline =
      clock_.Now() + Nanos{std::clamp<int64_t>(head.budget_nanos, 0, kBudgetMax.value)};
  work.payload = std::move(payload);
  if (head.verb == Verb::kGetMap) {
    co_return co_await Handle<peer::GetMapRequest>(std::move(work), fields);
  }
  if (head.verb == Verb::kAskHome) {
    co_return co_await Handle<peer::HomeRequest>(std::move(work), fields);
  }
  const bool asks_node = head.verb == Verb::kProbe && head.target == TargetId();
  if (asks_node) co_return SayDone(nullptr, Status());
  work.target = find_target_(head.target);
  if (work.target == nullptr) {
    co_return SayDone(nullptr, Status(Code::kUnavailable, "that target is not on this node"));
  }
  if (IsLate(work)) co_return SayDone(work.target, Status(Code::kDeadline));
  const bool brings = !work.payload.empty();
  if (brings != (head.verb == Verb::kAppend)) {
    ++stats_.requests_malformed;
    co_return SayDone(work.target, Status(Code::kInvalid, "payload where there is none"));
  }
  switch (head.verb) {
    case Verb::kAppend:
    case Verb::kRead:
    case Verb::kReadVerified:
    case Verb::kHolds:
    case Verb::kDrop:
    case Verb::kSync:
      co_return co_await DispatchShards(head.verb, std::move(work), fields);
    default:
      co_return co_await DispatchIndex(head.verb, std::move(work), fields);
  }
}

Task<Network::Reply> PeerService::DispatchShards(Verb verb, Work work, ByteSpan fields) {
  switch (verb) {
    case Verb::kAppend:
      if (work.version >= peer::kVersionOfChecksums) {
        return Handle<peer::AppendRequest>(std::move(work), fields);
      }
      return Handle<peer::AppendRequestV1>(std::move(work), fields);
    case Verb::kRead: return Handle<peer::ReadRequest>(std::move(work), fields);
    case Verb::kReadVerified: return Handle<peer::ReadVerifiedRequest>(std::move(work), fields);
    case Verb::kHolds: return Handle<peer::HoldsRequest>(std::move(work), fields);
    case Verb::kDrop: return Handle<peer::DropRequest>(std::move(work), fields);
    default: return Handle<peer::SyncRequest>(std::move(work), fields);
  }
}

Task<Network::Reply> PeerService::DispatchIndex(Verb verb, Work work, ByteSpan fields) {
  switch (verb) {
    case Verb::kPublish: return Handle<peer::PublishRequest>(std::move(work), fields);
    case Verb::kLookUp: return Handle<peer::LookUpRequest>(std::move(work), fields);
    case Verb::kReadFiled: return Handle<peer::ReadFiledRequest>(std::move(work), fields);
    case Verb::kWithdraw: return Handle<peer::WithdrawRequest>(std::move(work), fields);
    case Verb::kTouch: return Handle<peer::TouchRequest>(std::move(work), fields);
    case Verb::kSaveUse: return Handle<peer::SaveUseRequest>(std::move(work), fields);
    case Verb::kSaveRemoval: return Handle<peer::SaveRemovalRequest>(std::move(work), fields);
    case Verb::kNameOf: return Handle<peer::NameOfRequest>(std::move(work), fields);
    case Verb::kListFiled: return Handle<peer::ListFiledRequest>(std::move(work), fields);
    case Verb::kSaveSpace: return Handle<peer::SaveSpaceRequest>(std::move(work), fields);
    case Verb::kListSpaces: return Handle<peer::ListSpacesRequest>(std::move(work), fields);
    default: return Handle<peer::ProbeRequest>(std::move(work), fields);
  }
}

template <typename Message>
Task<Network::Reply> PeerService::Handle(Work work, ByteSpan fields) {
  Result<Message> message = peer::Parse<Message>(fields);
  if (!message.ok()) {
    ++stats_.requests_malformed;
    co_return SayDone(work.target, message.status());
  }
  co_return co_await Do(std::move(work), std::move(message).value());
}

// --- Shards -------------------------------------------------------------------------------------

Task<Network::Reply> PeerService::Do(Work work, peer::AppendRequestV1 request) {
  return Append(std::move(work), std::move(request.manifest), request.index, std::nullopt);
}

Task<Network::Reply> PeerService::Do(Work work, peer::AppendRequest request) {
  return Append(std::move(work), std::move(request.manifest), request.index, request.checksum);
}

Task<Network::Reply> PeerService::Append(Work work, Manifest manifest, ShardIndex index,
                                         std::optional<uint64_t> sent) {
  if (work.payload.size() != manifest.shard_size) {
    ++stats_.requests_malformed;
    co_return SayDone(work.target, Status(Code::kInvalid, "the payload is not one shard"));
  }
  if (Overloaded(work.source, work.payload.size())) {
    co_return SayDone(work.target, Status(Code::kOverloaded));
  }
  const Share share(*this, work.source, work.payload.size());
  const uint64_t checksum = Checksum(std::as_const(work.payload).span());
  if (sent && *sent != checksum) {
    ++stats_.payloads_damaged;
    co_return SayDone(work.target, Status(Code::kUnavailable, "the shard was damaged on its way"));
  }
  const Status outcome = co_await AppendPatiently(work, manifest, index, checksum);
  if (outcome.ok()) stats_.bytes_appended += work.payload.size();
  co_return SayDone(work.target, outcome);
}

Task<Status> PeerService::AppendPatiently(const Work& work, const Manifest& manifest,
                                          ShardIndex index, uint64_t checksum) {
  constexpr int kRoomAttempts = 4;
  const ShardPayload shard{work.payload.span(), checksum};
  for (int attempt = 0;; ++attempt) {
    Status outcome = co_await work.target->Append(manifest, index, shard);
    const bool again = outcome.code() == Code::kNoSpace && keeper_ != nullptr &&
                       attempt < kRoomAttempts && !IsLate(work);
    if (!again) co_return outcome;
    KV_CO_RETURN_IF_ERROR(co_await keeper_->MakeRoom(work.payload.size()));
  }
}

Task<Network::Reply> PeerService::Do(Work work, peer::ReadRequest request) {
  if (Overloaded(work.source, request.size)) {
    co_return SayDone(work.target, Status(Code::kOverloaded));
  }
  const Share share(*this, work.source, request.size);
  Bytes payload = Bytes::Unfilled(request.size);
  const SegmentLog::Range range{.stripe = request.stripe,
                                .index = request.index,
                                .offset = request.offset,
                                .into = payload.span(),
                                .checksum = request.checksum,
                                .checked_size = request.checked_size};
  const Status outcome = co_await work.target->Read(range);
  co_return SayBytes(work, outcome, std::move(payload));
}

Task<Network::Reply> PeerService::Do(Work work, peer::ReadVerifiedRequest request) {
  if (Overloaded(work.source, request.size)) {
    co_return SayDone(work.target, Status(Code::kOverloaded));
  }
  const Share share(*this, work.source, request.size);
  Bytes payload = Bytes::Unfilled(request.size);
  const Status outcome =
      co_await work.target->ReadVerified(request.stripe, request.index, payload.span());
  co_return SayBytes(work, outcome, std::move(payload));
}

Task<Network::Reply> PeerService::Do(Work work, peer::HoldsRequest request) {
  std::vector<Status> outcomes;
  for (const peer::ShardName& shard : request.shards) {
    outcomes.push_back(co_await work.target->Holds(shard.stripe, shard.index));
  }
  co_return Say<std::vector<Status>>(work.target, std::move(outcomes));
}

Task<Network::Reply> PeerService::Do(Work work, peer::DropRequest request) {
  std::vector<Status> outcomes;
  for (const StripeId stripe : request.stripes) {
    if (IsLate(work)) {
      outcomes.emplace_back(Code::kDeadline);
    } else {
      outcomes.push_back(co_await work.target->Drop(stripe));
    }
  }
  co_return Say<std::vector<Status>>(work.target, std::move(outcomes));
}

Task<Network::Reply> PeerService::Do(Work work, peer::SyncRequest) {
  const Status outcome = co_await work.target->Sync();
  co_return SayDone(work.target, outcome);
}

// --- The index replica --------------------------------------------------------------------------

// Their writers are homes: one that has lost its place since must not change anything any more.

Task<Network::Reply> PeerService::Do(Work work, peer::PublishRequest request) {
  Status outcome = map_.CheckIndexWriter(request.stripe.manifest.stripe, work.epoch);
  if (outcome.ok()) {
    outcome = co_await work.target->Publish(std::move(request.stripe), request.durability);
  }
  co_return SayDone(work.target, outcome);
}

Task<Network::Reply> PeerService::Do(Work work, peer::LookUpRequest request) {
  const auto found = co_await work.target->LookUp(request.space, request.run);
  co_return Say(work.target, found);
}

Task<Network::Reply> PeerService::Do(Work work, peer::ReadFiledRequest request) {
  const auto found = co_await work.target->ReadFiled(request.stripe);
  co_return Say(work.target, found);
}

Task<Network::Reply> PeerService::Do(Work work, peer::WithdrawRequest request) {
  std::vector<Status> outcomes;
  for (const StripeName& name : request.names) {
    Status outcome = map_.CheckIndexWriter(name.stripe, work.epoch);
    if (outcome.ok() && IsLate(work)) outcome = Status(Code::kDeadline);
    if (outcome.ok()) outcome = co_await work.target->Withdraw(name);
    outcomes.push_back(std::move(outcome));
  }
  co_return Say<std::vector<Status>>(work.target, std::move(outcomes));
}

Task<Network::Reply> PeerService::Do(Work work, peer::TouchRequest request) {
  for (const auto& [stripe, use] : request.hits) work.target->Touch(stripe, use);
  co_return SayDone(work.target, Status());
}

Task<Network::Reply> PeerService::Do(Work work, peer::SaveUseRequest request) {
  Status outcome = map_.CheckIndexWriter(request.stripe, work.epoch);
  if (outcome.ok() && request.use) work.target->Touch(request.stripe, *request.use);
  if (outcome.ok()) outcome = co_await work.target->SaveUse(request.stripe);
  co_return SayDone(work.target, outcome);
}

Task<Network::Reply> PeerService::Do(Work work, peer::SaveRemovalRequest request) {
  Status outcome = map_.CheckIndexWriter(request.stripe, work.epoch);
  if (outcome.ok()) outcome = co_await work.target->SaveRemoval(request.stripe);
  co_return SayDone(work.target, outcome);
}

Task<Network::Reply> PeerService::Do(Work work, peer::NameOfRequest request) {
  const auto name = co_await work.target->NameOf(request.stripe);
  co_return Say(work.target, name);
}

Task<Network::Reply> PeerService::Do(Work work, peer::ListFiledRequest request) {
  const auto list = co_await work.target->ListFiled(request.after, request.limit);
  co_return Say(work.target, list);
}

// --- Namespaces, and the rest -------------------------------------------------------------------

Task<Network::Reply> PeerService::Do(Work work, peer::SaveSpaceRequest request) {
  const Status outcome = co_await work.target->SaveSpace(std::move(request.record));
  co_return SayDone(work.target, outcome);
}

Task<Network::Reply> PeerService::Do(Work work, peer::ListSpacesRequest request) {
  Result<std::vector<SpaceRecord>> spaces = co_await work.target->ListSpaces();
  if (!spaces.ok()) co_return SayDone(work.target, spaces.status());
  peer::SpacePage page;
  uint64_t bytes = 0;
  size_t next = request.first;
  for (; next < spaces.value().size() && bytes < peer::kPageBytesMax; ++next) {
    bytes += EncodeSpace(spaces.value()[next]).size();
    page.records.push_back(std::move(spaces.value()[next]));
  }
  page.more = next < spaces.value().size();
  co_return Say<peer::SpacePage>(work.target, std::move(page));
}

Task<Network::Reply> PeerService::Do(Work work, peer::ProbeRequest) {
  co_return SayDone(work.target, Status());
}

Task<Network::Reply> PeerService::Do(Work, peer::GetMapRequest request) {
  Bytes encoded = map_.Encoded();
  const peer::MapSize size{.bytes = static_cast<uint32_t>(encoded.size())};
  Network::Reply reply = Say<peer::MapSize>(nullptr, size);
  if (encoded.size() <= request.room) reply.payload = std::move(encoded);
  co_return std::move(reply);
}

Task<Network::Reply> PeerService::Do(Work work, peer::HomeRequest request) {
  if (!answer_home_) {
    co_return SayDone(nullptr, Status(Code::kUnavailable, "this node serves no index yet"));
  }
  peer::HomeAnswer home;
  home.bytes = co_await answer_home_(work.source, std::move(request.bytes));
  co_return Say<peer::HomeAnswer>(nullptr, std::move(home));
}

// --- Answers ------------------------------------------------------------------------------------

peer::AnswerHead PeerService::HeadOf(const TargetPort* target) const {
  peer::AnswerHead head{.epoch = map_.epoch()};
  if (target == nullptr) return head;
  head.free_bytes = target->free_bytes();
  head.queue_depth = target->operations_in_flight();
  return head;
}

template <typename Value>
Network::Reply PeerService::Say(const TargetPort* target, const Result<Value>& answer) const {
  return Network::Reply(peer::EncodeAnswer(HeadOf(target), answer));
}

Network::Reply PeerService::SayDone(const TargetPort* target, const Status& outcome) const {
  if (outcome.ok()) return Say<peer::Nothing>(target, peer::Nothing());
  return Say<peer::Nothing>(target, outcome);
}

Network::Reply PeerService::SayBytes(const Work& work, const Status& outcome, Bytes payload) {
  if (!outcome.ok()) return SayDone(work.target, outcome);
  if (IsLate(work)) return SayDone(work.target, Status(Code::kDeadline));
  stats_.bytes_read += payload.size();
  Network::Reply reply = SayDone(work.target, outcome);
  reply.payload = std::move(payload);
  return reply;
}

bool PeerService::IsLate(const Work& work) {
  if (clock_.Now() < work.deadline) return false;
  ++stats_.requests_late;
  return true;
}

bool PeerService::Overloaded(NodeId source, uint64_t bytes) {
  const auto held = source_bytes_.find(source);
  const uint64_t of_source = held == source_bytes_.end() ? 0 : held->second;
  if (of_source + bytes <= options_.source_bytes_max && bytes_ + bytes <= options_.bytes_max) {
    return false;
  }
  ++stats_.requests_overloaded;
  return true;
}

}  // namespace cairn::kv
