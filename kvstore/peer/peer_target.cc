// One request for each verb; hits are collected, drops and withdrawals leave in batches.
#include "kvstore/peer/peer_target.h"

#include <algorithm>
#include <utility>

namespace cairn::kv {
namespace {

using peer::Verb;

bool IsRead(Verb verb) {
  switch (verb) {
    case Verb::kRead:
    case Verb::kReadVerified:
    case Verb::kHolds:
    case Verb::kLookUp:
    case Verb::kReadFiled:
    case Verb::kNameOf:
    case Verb::kListFiled:
    case Verb::kListSpaces:
    case Verb::kProbe:
    case Verb::kGetMap:
      return true;
    default:
      return false;
  }
}

void Raise(StripeUse& use, const StripeUse& by) {
  use.expires_at = std::max(use.expires_at, by.expires_at);
  use.last_access = std::max(use.last_access, by.last_access);
  use.keep_until = std::max(use.keep_until, by.keep_until);
}

}  // namespace

PeerTarget::PeerTarget(Loop& loop, PeerCaller& caller, NodeId node, TargetId id,
                       PeerTargetOptions options)
    : caller_(caller),
      node_(node),
      id_(id),
      options_(options),
      questions_(loop, peer::kBatchMax,
                 [this](std::vector<peer::ShardName> shards) {
                   return SendQuestions(std::move(shards));
                 }),
      drops_(loop, peer::kBatchMax,
             [this](std::vector<StripeId> stripes) { return SendDrops(std::move(stripes)); }),
      withdrawals_(loop, peer::kBatchMax,
                   [this](std::vector<StripeName> names) {
                     return SendWithdrawals(std::move(names));
                   }),
      stopping_(loop),
      gate_(loop) {
  gate_.Hold(FlushNowAndThen());
}

PeerTarget::~PeerTarget() { KV_CHECK(gate_.closed()); }

uint32_t PeerTarget::operations_in_flight() const {
  return std::max(in_flight_, seen_.queue_depth);
}

// --- Requests -----------------------------------------------------------------------------------

template <typename Message>
Result<PeerCaller::Order> PeerTarget::OrderOf(Verb verb, const Message& message) const {
  KV_ASSIGN_OR_RETURN(std::vector<uint8_t> fields, peer::Encode(message));
  const Nanos timeout = IsRead(verb) ? options_.read_timeout : options_.write_timeout;
  PeerCaller::Order order{.node = node_, .target = id_, .verb = verb};
  order.message = std::move(fields);
  order.deadline = caller_.clock().Now() + timeout;
  order.repeat = IsRead(verb) ? Repeat::kOnce : Repeat::kNo;
  return order;
}

Task<Result<PeerCaller::Answer>> PeerTarget::Ask(PeerCaller::Order order) {
  ++in_flight_;
  Result<PeerCaller::Answer> answer = co_await caller_.Ask(std::move(order));
  --in_flight_;
  if (answer.ok()) {
    seen_ = answer.value().head;
    seen_at_ = caller_.clock().Now();
  }
  co_return answer;
}

template <typename Value, typename Message>
Task<Result<Value>> PeerTarget::Fetch(Verb verb, Message message) {
  KV_CO_ASSIGN_OR_RETURN(PeerCaller::Order order, OrderOf(verb, message));
  const Result<PeerCaller::Answer> answer = co_await Ask(std::move(order));
  if (!answer.ok()) co_return answer.status();
  co_return peer::ParseAnswer<Value>(answer.value().fields());
}

template <typename Message>
Task<Status> PeerTarget::Do(Verb verb, Message message) {
  const Result<peer::Nothing> done = co_await Fetch<peer::Nothing>(verb, std::move(message));
  co_return done.status();
}

Task<Status> PeerTarget::ReadInto(PeerCaller::Order order) {
  const size_t wanted = order.into.size();
  const Result<PeerCaller::Answer> answer = co_await Ask(std::move(order));
  if (!answer.ok()) co_return answer.status();
  const Result<peer::Nothing> done = peer::ParseAnswer<peer::Nothing>(answer.value().fields());
  if (done.ok() && answer.value().payload_size != wanted) {
    co_return Status(Code::kInvalid, "a node answered with fewer bytes than it was asked for");
  }
  co_return done.status();
}

// --- Shards -------------------------------------------------------------------------------------

Result<PeerCaller::Order> PeerTarget::OrderAppend(const Manifest& manifest, ShardIndex index,
                                                  uint64_t checksum) const {
  if (caller_.protocol() < peer::kVersionOfChecksums) {
    return OrderOf(Verb::kAppend, peer::AppendRequestV1{.manifest = manifest, .index = index});
  }
  const peer::AppendRequest request{.manifest = manifest, .index = index, .checksum = checksum};
  KV_ASSIGN_OR_RETURN(PeerCaller::Order order, OrderOf(Verb::kAppend, request));
  order.version = peer::kVersionOfChecksums;
  return order;
}

Task<Status> PeerTarget::Append(const Manifest& manifest, ShardIndex index,
                                ShardPayload payload) {
  KV_CO_ASSIGN_OR_RETURN(PeerCaller::Order order, OrderAppend(manifest, index, payload.checksum));
  order.payload.push_back(payload.bytes);
  co_return co_await ReadInto(std::move(order));
}

Task<Status> PeerTarget::Read(SegmentLog::Range range) {
  const peer::ReadRequest request{.stripe = range.stripe,
                                  .index = range.index,
                                  .offset = range.offset,
                                  .size = static_cast<uint32_t>(range.into.size()),
                                  .checksum = range.checksum,
                                  .checked_size = range.checked_size};
  KV_CO_ASSIGN_OR_RETURN(PeerCaller::Order order, OrderOf(Verb::kRead, request));
  order.into = range.into;
  if (caller_.gives_up_alone()) order.deadline = std::min(order.deadline, range.give_up_at);
  co_return co_await ReadInto(std::move(order));
}

Task<Status> PeerTarget::ReadVerified(StripeId stripe, ShardIndex index, MutableByteSpan into) {
  const peer::ReadVerifiedRequest request{
      .stripe = stripe, .index = index, .size = static_cast<uint32_t>(into.size())};
  KV_CO_ASSIGN_OR_RETURN(PeerCaller::Order order, OrderOf(Verb::kReadVerified, request));
  order.into = into;
  co_return co_await ReadInto(std::move(order));
}

Task<Status> PeerTarget::Sync() { return Do(Verb::kSync, peer::SyncRequest()); }

template <typename Message>
Task<std::vector<Status>> PeerTarget::DoMany(Verb verb, Message message, size_t count) {
  Result<std::vector<Status>> done =
      co_await Fetch<std::vector<Status>>(verb, std::move(message));
  if (done.ok() && done.value().size() == count) co_return std::move(done).value();
  const Status why = done.ok() ? Status(Code::kInvalid, "a node left out some outcomes")
                               : done.status();
  co_return std::vector<Status>(count, why);
}

Task<std::vector<Status>> PeerTarget::SendQuestions(std::vector<peer::ShardName> shards) {
  const size_t count = shards.size();
  peer::HoldsRequest request;
  request.shards = std::move(shards);
  return DoMany(Verb::kHolds, std::move(request), count);
}

Task<std::vector<Status>> PeerTarget::SendDrops(std::vector<StripeId> stripes) {
  const size_t count = stripes.size();
  peer::DropRequest request;
  request.stripes = std::move(stripes);
  return DoMany(Verb::kDrop, std::move(request), count);
}

// --- The index replica --------------------------------------------------------------------------

Task<Status> PeerTarget::Publish(IndexedStripe stripe, Durability durability) {
  peer::PublishRequest request;
  request.stripe = std::move(stripe);
  request.durability = durability;
  return Do(Verb::kPublish, std::move(request));
}

Task<Result<std::vector<IndexedStripe>>> PeerTarget::LookUp(NamespaceId space, RunId run) {
  const peer::LookUpRequest request{.space = space, .run = run};
  return Fetch<std::vector<IndexedStripe>>(Verb::kLookUp, request);
}

Task<Result<IndexedStripe>> PeerTarget::ReadFiled(StripeId stripe) {
  const peer::ReadFiledRequest request{.stripe = stripe};
  return Fetch<IndexedStripe>(Verb::kReadFiled, request);
}

Task<std::vector<Status>> PeerTarget::SendWithdrawals(std::vector<StripeName> names) {
  const size_t count = names.size();
  peer::WithdrawRequest request;
  request.names = std::move(names);
  return DoMany(Verb::kWithdraw, std::move(request), count);
}

void PeerTarget::Touch(StripeId stripe, const StripeUse& use) {
  Raise(touched_[stripe], use);
  if (touched_.size() <= kTouchesMax) return;
  touched_.erase(touched_.begin());
  ++touches_dropped_;
}

Task<Status> PeerTarget::SaveUse(StripeId stripe) {
  peer::SaveUseRequest request;
  request.stripe = stripe;
  auto hit = touched_.extract(stripe);
  if (hit) request.use = hit.mapped();
  const std::optional<StripeUse> use = request.use;
  Status saved = co_await Do(Verb::kSaveUse, std::move(request));
  if (!saved.ok() && use.has_value()) Touch(stripe, *use);
  co_return saved;
}

Task<Status> PeerTarget::SaveRemoval(StripeId stripe) {
  const peer::SaveRemovalRequest request{.stripe = stripe};
  return Do(Verb::kSaveRemoval, request);
}

Task<Result<StripeName>> PeerTarget::NameOf(StripeId stripe) {
  const peer::NameOfRequest request{.stripe = stripe};
  return Fetch<StripeName>(Verb::kNameOf, request);
}

Task<Result<std::vector<TargetPort::Filed>>> PeerTarget::ListFiled(std::optional<StripeId> after,
                                                                   size_t limit) {
  std::vector<Filed> all;
  while (all.size() < limit) {
    const auto some = static_cast<uint32_t>(std::min<size_t>(limit - all.size(), peer::kBatchMax));
    const peer::ListFiledRequest request{.after = after, .limit = some};
    Result<std::vector<Filed>> page = co_await Fetch<std::vector<Filed>>(Verb::kListFiled, request);
    if (!page.ok()) co_return page.status();
    all.insert(all.end(), page.value().begin(), page.value().end());
    if (page.value().size() < some) break;
    after = all.back().stripe;
  }
  co_return std::move(all);
}

// --- Namespaces ---------------------------------------------------------------------------------

Task<Status> PeerTarget::SaveSpace(SpaceRecord record) {
  peer::SaveSpaceRequest request;
  request.record = std::move(record);
  return Do(Verb::kSaveSpace, std::move(request));
}

Task<Result<std::vector<SpaceRecord>>> PeerTarget::ListSpaces() {
  std::vector<SpaceRecord> all;
  for (bool more = true; more;) {
    const peer::ListSpacesRequest request{.first = static_cast<uint32_t>(all.size())};
    Result<peer::SpacePage> page =
        co_await Fetch<peer::SpacePage>(Verb::kListSpaces, request);
    if (!page.ok()) co_return page.status();
    for (SpaceRecord& record : page.value().records) all.push_back(std::move(record));
    more = page.value().more && !page.value().records.empty();
  }
  co_return std::move(all);
}

// --- In the background --------------------------------------------------------------------------

Task<Status> PeerTarget::Flush() {
  while (!touched_.empty()) {
    peer::TouchRequest request;
    while (!touched_.empty() && request.hits.size() < peer::kBatchMax) {
      request.hits.emplace_back(touched_.begin()->first, touched_.begin()->second);
      touched_.erase(touched_.begin());
    }
    const std::vector<std::pair<StripeId, StripeUse>> hits = request.hits;
    Status sent = co_await Do(Verb::kTouch, std::move(request));
    if (sent.ok()) continue;
    for (const auto& [stripe, use] : hits) Touch(stripe, use);
    co_return sent;
  }
  co_return Status();
}

Task<void> PeerTarget::FlushNowAndThen() {
  while (!stopping_.is_set()) {
    const Instant now = caller_.clock().Now();
    if (seen_at_ == Instant() || now - seen_at_ >= options_.flush_every) {
      (void)co_await Do(Verb::kProbe, peer::ProbeRequest());
    }
    (void)co_await Flush();
    const Instant next = caller_.clock().Now() + options_.flush_every;
    co_await caller_.clock().SleepUntil(next, &stopping_);
  }
}

Task<void> PeerTarget::Stop() {
  stopping_.Set();
  co_await gate_.Close();
  (void)co_await Flush();
}

}  // namespace cairn::kv
