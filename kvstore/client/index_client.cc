// Two acknowledgements to publish, a union of replicas to be sure of a miss.
#include "kvstore/client/index_client.h"

#include <algorithm>

#include "kvstore/types/limits.h"

namespace cairn::kv {
namespace {

constexpr size_t kGoneSlots = 65536;
constexpr uint32_t kReadAttempts = 4;

uint64_t Fingerprint(const NamespaceId& space, const BlockId& id) {
  return (space.low ^ id.high) * 0x9e3779b97f4a7c15u ^ id.low;
}

Status RemovedOr(const Status& failure) {
  if (failure.ok()) return failure;
  return Status(Code::kUnavailable, "not removed everywhere: " + failure.ToString());
}

}  // namespace

// Judges stripes as of one moment, and remembers the last one: neighbours share it.
class IndexClient::Judge {
 public:
  explicit Judge(const IndexClient& owner) : owner_(owner), now_(owner.clock_.UnixNow()) {}

  MissReason WhyNot(const KnownStripe& stripe) {
    if (&stripe != last_) {
      last_ = &stripe;
      verdict_ = owner_.WhyNot(stripe, now_);
    }
    return verdict_;
  }

 private:
  const IndexClient& owner_;
  const UnixMillis now_;
  const KnownStripe* last_ = nullptr;
  MissReason verdict_ = MissReason::kNone;
};

IndexClient::IndexClient(Parts parts, uint64_t cache_bytes_max)
    : clock_(parts.clock),
      targets_(parts.targets),
      stats_(parts.stats),
      leases_(parts.leases),
      spaces_(parts.spaces),
      ledger_(parts.ledger),
      cache_(cache_bytes_max),
      gone_(kGoneSlots) {}

Task<Status> IndexClient::Publish(IndexedStripe stripe, Durability durability) {
  const StripeName name{stripe.manifest.space, stripe.manifest.run, stripe.manifest.stripe};
  const bool was_filed = StateOf(name.stripe).has_value();
  publishing_.insert(name.stripe);
  Status outcome = co_await FileWithReplicas(stripe, durability);
  if (spaces_.IsDeleted(name.space)) outcome = spaces_.WhyNot(name.space);
  if (!outcome.ok()) (void)co_await Remove(name, MissReason::kAbsent);
  publishing_.erase(name.stripe);
  if (!outcome.ok()) co_return outcome;
  if (!was_filed) CountIn(name.stripe);
  const RunKey key{name.space, name.run};
  NoteChange(key);
  ForgetGone(stripe.manifest);
  cache_.Add(key, std::move(stripe));
  co_return Status();
}

Task<Status> IndexClient::FileWithReplicas(const IndexedStripe& stripe, Durability durability) {
  const Manifest& manifest = stripe.manifest;
  const std::vector<TargetId> order = ReplicaOrder(manifest.space, manifest.run, targets_.ids());
  const size_t wanted = std::min<size_t>(kIndexReplicas, order.size());
  const size_t needed = std::min<size_t>(2, order.size());
  size_t acknowledged = 0;
  size_t next = 0;
  Status failure(Code::kUnavailable, "no target takes index records");
  while (acknowledged < needed && next < order.size()) {
    std::vector<std::pair<TargetId, Task<Status>>> calls;
    while (next < order.size() && acknowledged + calls.size() < wanted) {
      const TargetId id = order[next++];
      if (!targets_.IsLive(id)) continue;
      calls.emplace_back(id, targets_.Find(id)->Publish(stripe, durability));
    }
    for (auto& [id, call] : calls) {
      Status outcome = co_await call;
      targets_.Note(id, outcome);
      if (outcome.ok()) {
        ++acknowledged;
      } else {
        failure = std::move(outcome);
      }
    }
  }
  // Some replica lacks what it should have, or holds what lookups would not look for.
  if (acknowledged < wanted || next > wanted) settled_ = false;
  if (acknowledged < needed) co_return failure;
  co_return Status();
}

bool IndexClient::IsFiled(StripeId stripe) const {
  if (removing_.contains(stripe)) return false;
  const std::vector<TargetPort*>& ports = targets_.ports();
  return std::any_of(ports.begin(), ports.end(),
                     [&](const TargetPort* port) { return port->MayHaveFiled(stripe); });
}

Task<Status> IndexClient::Republish(IndexedStripe stripe) {
  const Manifest& manifest = stripe.manifest;
  const StripeId id = manifest.stripe;
  const StripeName name{manifest.space, manifest.run, id};
  const std::vector<TargetId> order = ReplicaOrder(manifest.space, manifest.run, targets_.ids());
  std::vector<TargetPort*> ports;
  for (size_t i = 0; i < order.size(); ++i) {
    TargetPort* port = targets_.Find(order[i]);
    if (port->MayHaveFiled(id) || i < kIndexReplicas) ports.push_back(port);
  }
  if (!IsFiled(id)) co_return Status(Code::kNotFound);
  republishing_[id] = false;
  std::vector<Task<Status>> calls;
  for (TargetPort* port : ports) calls.push_back(port->Publish(stripe, Durability::kProcess));
  size_t acknowledged = 0;
  Status failure(Code::kUnavailable, "no target takes index records");
  for (size_t i = 0; i < calls.size(); ++i) {
    Task<Status>& call = calls[i];
    Status outcome = co_await call;
    targets_.Note(ports[i]->id(), outcome);
    if (outcome.ok()) {
      ++acknowledged;
    } else {
      failure = std::move(outcome);
    }
  }
  const bool removed = republishing_[id];
  republishing_.erase(id);
  if (removed) {
    publishing_.insert(id);  // What was refiled is not counted.
    (void)co_await Remove(name, MissReason::kAbsent);
    publishing_.erase(id);
    co_return Status(Code::kNotFound);
  }
  if (acknowledged < ports.size()) settled_ = false;
  const RunKey key{name.space, name.run};
  NoteChange(key);
  cache_.Add(key, std::move(stripe));
  if (acknowledged < std::min<size_t>(2, order.size())) co_return failure;
  co_return Status();
}

Task<Result<KnownRunPtr>> IndexClient::Load(RunKey key, std::span<const BlockId> wanted) {
  const KnownRunPtr known = cache_.Find(key);
  if (known != nullptr && (known->complete || AllUsable(*known, wanted))) co_return known;
  co_return co_await LoadAnew(key, wanted, Ask::kUntilFound);
}

Task<Result<KnownRunPtr>> IndexClient::LoadAll(RunKey key) {
  const std::span<const BlockId> any;
  co_return co_await LoadAnew(key, any, Ask::kAll);
}

Task<Result<KnownRunPtr>> IndexClient::LoadAnew(RunKey key, std::span<const BlockId> wanted,
                                                Ask ask) {
  for (uint32_t attempt = 0;; ++attempt) {
    Loading& loading = loading_[key];  // A std::map: stays where it is.
    ++loading.readers;
    const uint64_t changes_before = loading.changes;
    auto run = co_await Read(key, wanted, ask);
    const bool changed = loading.changes != changes_before;
    if (--loading.readers == 0) loading_.erase(key);
    if (!run.ok()) co_return run.status();
    // What was published or removed while we read may be wrong in what we read.
    if (changed && attempt + 1 < kReadAttempts) continue;
    const KnownRunPtr kept = cache_.Insert(key, std::move(run).value());
    if (changed) kept->complete = false;
    co_return kept;
  }
}

Task<Result<KnownRun>> IndexClient::Read(RunKey key, std::span<const BlockId> wanted,
                                         Ask ask) {
  const std::vector<TargetId> order = ReplicaOrder(key.space, key.run, targets_.ids());
  const bool all = ask == Ask::kAll;
  const bool few = settled_ && !all;
  const size_t ask_max = few ? std::min<size_t>(kIndexReplicas, order.size()) : order.size();
  KnownRun run;
  size_t next = 0;
  size_t answered = 0;
  Status failure(Code::kUnavailable, "no target answers for the index");
  while (next < ask_max && (all || !(answered > 0 && AllUsable(run, wanted)))) {
    // One first; when that does not settle it, all others at once.
    const size_t until = next == 0 && !all ? 1 : ask_max;
    std::vector<std::pair<TargetId, Task<Result<std::vector<IndexedStripe>>>>> calls;
    for (; next < until; ++next) {
      calls.emplace_back(order[next], targets_.Find(order[next])->LookUp(key.space, key.run));
    }
    for (auto& [id, call] : calls) {
      auto stripes = co_await call;
      targets_.Note(id, stripes.status());
      if (!stripes.ok()) {
        failure = stripes.status();
        continue;
      }
      ++answered;
      for (IndexedStripe& stripe : stripes.value()) run.Add(std::move(stripe));
    }
  }
  if (answered == 0) co_return failure;
  // Published means: two replicas have it. So all but one must have been asked to be sure.
  run.answered_by_all = answered == order.size();
  run.complete = next >= ask_max && answered + 1 >= ask_max && (answered >= 2 || ask_max < 2);
  co_return std::move(run);
}

bool IndexClient::AllUsable(const KnownRun& run, std::span<const BlockId> wanted) const {
  Judge judge(*this);
  return std::all_of(wanted.begin(), wanted.end(), [&](const BlockId& id) {
    const auto places = run.Find(id);
    return std::any_of(places.begin(), places.end(), [&](const KnownRun::Place& place) {
      return judge.WhyNot(*place.stripe) == MissReason::kNone;
    });
  });
}

MissReason IndexClient::WhyNot(const KnownStripe& stripe) const {
  return WhyNot(stripe, clock_.UnixNow());
}

MissReason IndexClient::WhyNot(const KnownStripe& stripe, UnixMillis now) const {
  const bool is_gone = stripe.gone || (!removing_.empty() &&
                                       removing_.contains(stripe.manifest.stripe));
  if (is_gone) return WhyGone(stripe.manifest);
  if (now >= stripe.expires_at) return MissReason::kExpired;
  if (targets_.ShardsAtHand(stripe.manifest) < stripe.manifest.data_shards) {
    // It may also be a copy of what was removed since.
    const Gone* gone = FindGone(stripe.manifest.space, stripe.manifest.blocks.front().id);
    return gone == nullptr ? MissReason::kUnavailable : gone->reason;
  }
  return MissReason::kNone;
}

uint32_t IndexClient::Spare(const KnownStripe& stripe) const {
  const uint32_t at_hand = targets_.ShardsAtHand(stripe.manifest);
  return at_hand - std::min<uint32_t>(at_hand, stripe.manifest.data_shards);
}

IndexClient::Answer IndexClient::Find(const KnownRun& run, const NamespaceId& space,
                                      BlockId id) const {
  return FindPrefix(run, space, {&id, 1}).front();
}

std::vector<IndexClient::Answer> IndexClient::FindPrefix(const KnownRun& run,
                                                         const NamespaceId& space,
                                                         std::span<const BlockId> wanted) const {
  std::vector<Answer> answers;
  answers.reserve(wanted.size());
  Judge judge(*this);
  for (const BlockId& id : wanted) {
    Answer& answer = answers.emplace_back();
    for (const KnownRun::Place& place : run.Find(id)) {
      const MissReason reason = judge.WhyNot(*place.stripe);
      if (answer.place == nullptr) answer.reason = reason;
      if (reason != MissReason::kNone) continue;
      // What a failed put left behind must not stand before what a later one stored whole.
      if (answer.place == nullptr || Spare(*place.stripe) > Spare(*answer.place->stripe)) {
        answer.place = &place;
      }
    }
    if (answer.reason == MissReason::kAbsent) answer.reason = WhyUnknown(run, space, id);
    if (answer.place == nullptr) break;
  }
  return answers;
}

MissReason IndexClient::WhyUnknown(const KnownRun& run, const NamespaceId& space,
                                   BlockId id) const {
  if (const Gone* gone = FindGone(space, id)) return gone->reason;
  // Too few replicas answered to be sure.
  return run.complete ? MissReason::kAbsent : MissReason::kUnavailable;
}

void IndexClient::Touch(KnownStripe& stripe) {
  const UnixMillis now = clock_.UnixNow();
  const auto seconds = static_cast<uint32_t>(now.value / 1000);
  if (stripe.touched_seconds == seconds) return;
  stripe.touched_seconds = seconds;
  const Retention& retention = stripe.manifest.retention;
  if (retention.kind == RetentionKind::kRefreshed) {
    const UnixMillis expires_at{now.value + int64_t{retention.ttl_seconds} * 1000};
    stripe.expires_at = std::max(stripe.expires_at, expires_at);
  }
  const StripeUse use{
      .expires_at = stripe.expires_at, .last_access = seconds, .keep_until = 0};
  for (TargetPort* port : targets_.ports()) {
    port->Touch(stripe.manifest.stripe, use);
  }
}

std::optional<StripeState> IndexClient::StateOf(StripeId stripe) const {
  std::optional<StripeState> newest;
  for (const TargetPort* port : targets_.ports()) {
    const std::optional<StripeState> state = port->StateOf(stripe);
    if (!state) continue;
    if (!newest) {
      newest = state;
      continue;
    }
    newest->expires_at = std::max(newest->expires_at, state->expires_at);
    newest->last_access = std::max(newest->last_access, state->last_access);
    newest->keep_until = std::max(newest->keep_until, state->keep_until);
  }
  return newest;
}

bool IndexClient::IsHeld(StripeId stripe) const {
  if (leases_.IsLeased(stripe, clock_.Now())) return true;
  const std::optional<StripeState> state = StateOf(stripe);
  return state && state->keep_until > NowSeconds();
}

void IndexClient::CountIn(StripeId stripe) {
  const std::optional<StripeState> state = StateOf(stripe);
  if (!state) return;
  const SpaceRecord* space = spaces_.Find(state->space);
  ledger_.Add(state->space, {state->payload_bytes, state->keep_until},
              space == nullptr ? KeepLimits{} : LimitsOf(*space), NowSeconds());
}

Task<Status> IndexClient::Keep(KnownStripePtr stripe, uint32_t keep_until, KeepLimits limits) {
  const StripeId id = stripe->manifest.stripe;
  const std::optional<StripeState> state = StateOf(id);
  if (!state || removing_.contains(id)) co_return Status(Code::kNotFound);
  // Until the promise is counted and every replica has it in memory nothing is awaited.
  KV_CO_RETURN_IF_ERROR(ledger_.Raise(state->space, {state->payload_bytes, state->keep_until},
                                      keep_until, limits, NowSeconds()));
  const UnixMillis end{int64_t{keep_until} * 1000};
  stripe->expires_at = std::max({stripe->expires_at, state->expires_at, end});
  const StripeUse use{.expires_at = stripe->expires_at,
                      .last_access = NowSeconds(),
                      .keep_until = keep_until};
  std::vector<Task<Status>> calls;
  for (TargetPort* port : targets_.ports()) {
    if (!port->MayHaveFiled(id)) continue;
    port->Touch(id, use);
    calls.push_back(port->SaveUse(id));
  }
  size_t saved = 0;
  const size_t needed = std::min<size_t>(2, calls.size());
  Status failure(Code::kUnavailable, "no target takes index records");
  for (Task<Status>& call : calls) {
    Status outcome = co_await call;
    if (outcome.ok()) {
      ++saved;
    } else {
      failure = std::move(outcome);
    }
  }
  if (saved < needed) co_return failure;
  co_return Status();
}

Task<Status> IndexClient::Remove(StripeName name, MissReason reason) {
  const RunKey key{name.space, name.run};
  if (reason != MissReason::kAbsent) {
    // For the reason of later misses; without the run at hand the misses are just kAbsent.
    const std::vector<BlockId> any;
    auto run = co_await Load(key, any);
    // From here until the cache calls it gone nothing is awaited: no lookup comes between.
    if (reason == MissReason::kEvicted && IsHeld(name.stripe)) {
      co_return Status(Code::kConflict, "leased");
    }
    if (run.ok()) RememberGone(*run.value(), name, reason);
  }
  leases_.Forget(name.stripe);
  const bool is_first = removing_.emplace(name.stripe, reason).second;
  const std::optional<StripeState> state = StateOf(name.stripe);
  if (is_first && state && !publishing_.contains(name.stripe)) {
    ledger_.Remove(state->space, {state->payload_bytes, state->keep_until}, NowSeconds());
  }
  const auto republishing = republishing_.find(name.stripe);
  if (republishing != republishing_.end()) republishing->second = true;
  NoteChange(key);
  cache_.Remove(key, name.stripe);
  std::vector<Task<Status>> calls;
  for (TargetPort* port : targets_.ports()) {
    if (port->MayHaveFiled(name.stripe)) calls.push_back(port->Withdraw(name));
  }
  Status outcome;
  for (Task<Status>& call : calls) {
    Status withdrawn = co_await call;
    if (!withdrawn.ok()) outcome = std::move(withdrawn);
  }
  NoteChange(key);
  cache_.Remove(key, name.stripe);
  if (on_removed_) on_removed_(name.stripe);
  calls.clear();
  for (TargetPort* port : targets_.ports()) calls.push_back(port->Drop(name.stripe));
  for (Task<Status>& call : calls) {
    Status dropped = co_await call;
    if (!dropped.ok()) outcome = std::move(dropped);
  }
  if (!is_first) co_return RemovedOr(outcome);  // Another call does the same; it counts.
  removing_.erase(name.stripe);
  switch (reason) {
    case MissReason::kEvicted:
      ++stats_.evicted_stripes;
      break;
    case MissReason::kExpired:
      ++stats_.expired_stripes;
      break;
    default:
      break;
  }
  co_return RemovedOr(outcome);
}

void IndexClient::NoteChange(const RunKey& key) {
  const auto found = loading_.find(key);
  if (found != loading_.end()) ++found->second.changes;
}

const IndexClient::Gone* IndexClient::FindGone(const NamespaceId& space, BlockId id) const {
  const uint64_t fingerprint = Fingerprint(space, id);
  const Gone& gone = gone_[fingerprint % kGoneSlots];
  const bool found = gone.reason != MissReason::kNone && gone.fingerprint == fingerprint;
  return found ? &gone : nullptr;
}

MissReason IndexClient::WhyGone(const Manifest& manifest) const {
  const auto removing = removing_.find(manifest.stripe);
  if (removing != removing_.end()) return removing->second;
  const Gone* gone = FindGone(manifest.space, manifest.blocks.front().id);
  return gone == nullptr ? MissReason::kAbsent : gone->reason;
}

void IndexClient::RememberGone(const KnownRun& run, StripeName name, MissReason reason) {
  for (const KnownStripePtr& known : run.stripes()) {
    if (known->manifest.stripe != name.stripe) continue;
    for (const ManifestBlock& block : known->manifest.blocks) {
      const uint64_t fingerprint = Fingerprint(name.space, block.id);
      gone_[fingerprint % kGoneSlots] = {fingerprint, reason};
    }
  }
}

void IndexClient::ForgetGone(const Manifest& manifest) {
  for (const ManifestBlock& block : manifest.blocks) {
    const uint64_t fingerprint = Fingerprint(manifest.space, block.id);
    Gone& gone = gone_[fingerprint % kGoneSlots];
    if (gone.fingerprint == fingerprint) gone = {};
  }
}

uint64_t IndexClient::memory_bytes() const {
  return cache_.memory_bytes() + gone_.size() * sizeof(Gone);
}

}  // namespace cairn::kv
