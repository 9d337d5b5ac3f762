// Two acknowledgements to publish, and one step in which a stripe stops to be seen.
#include "kvstore/client/home_index.h"

#include <algorithm>
#include <utility>

#include "kvstore/types/limits.h"

namespace cairn::kv {
namespace {

constexpr uint32_t kReadAttempts = 4;

Status RemovedOr(const Status& failure) {
  if (failure.ok()) return failure;
  return Status(Code::kUnavailable, "not removed everywhere: " + failure.ToString());
}

KnownStripePtr FindIn(const KnownRun& run, StripeId stripe) {
  for (const KnownStripePtr& known : run.stripes()) {
    if (known->manifest.stripe == stripe) return known;
  }
  return nullptr;
}

}  // namespace

HomeIndex::HomeIndex(Parts parts, uint64_t cache_bytes_max)
    : loop_(parts.loop),
      clock_(parts.clock),
      targets_(parts.targets),
      placement_(parts.placement),
      tenure_(parts.tenure),
      stats_(parts.stats),
      leases_(parts.leases),
      spaces_(parts.spaces),
      ledger_(parts.ledger),
      judge_(parts.clock, parts.targets, gone_),
      reader_(parts.targets, parts.placement, judge_),
      cache_(cache_bytes_max) {}

Task<Status> HomeIndex::Publish(IndexedStripe stripe, Durability durability) {
  const StripeName name{stripe.manifest.space, stripe.manifest.run, stripe.manifest.stripe};
  const bool was_filed = StateOf(name.stripe).has_value();
  const RunKey key{name.space, name.run};
  if (!was_filed) hidden_.emplace(name.stripe, key);
  publishing_.insert(name.stripe);
  Status outcome = co_await FileWithReplicas(stripe, durability);
  if (spaces_.IsDeleted(name.space)) {
    (void)co_await Remove(name, MissReason::kAbsent);
    publishing_.erase(name.stripe);
    co_return spaces_.WhyNot(name.space);
  }
  // Not its shards: who publishes it may try once more, and others may know it from before.
  bool taken_back = false;
  if (!outcome.ok() && !was_filed) taken_back = co_await TakeBack(name);
  publishing_.erase(name.stripe);
  NoteChange(key);
  // What a replica may still have is shown once all have it.
  if (outcome.ok() || taken_back) hidden_.erase(name.stripe);
  if (!was_filed) CountIn(name.stripe);
  if (!outcome.ok()) co_return outcome;
  gone_.Forget(stripe.manifest);
  cache_.Add(key, std::move(stripe));
  co_return Status();
}

Task<bool> HomeIndex::TakeBack(StripeName name) {
  std::vector<Task<Status>> calls;
  for (TargetPort* port : placement_.FilersOf(name.stripe)) {
    if (port->MayHaveFiled(name.stripe)) calls.push_back(port->Withdraw(name));
  }
  bool everywhere = true;
  for (Task<Status>& call : calls) {
    const Status withdrawn = co_await call;
    everywhere = everywhere && withdrawn.ok();
  }
  co_return everywhere;
}

Task<bool> HomeIndex::HasAllWhole(KnownRunPtr run, const Manifest& manifest) const {
  std::map<StripeId, KnownStripePtr> others;
  for (const ManifestBlock& block : manifest.blocks) {
    const KnownRun::Place* place = judge_.Find(*run, manifest.space, block.id).place;
    if (place == nullptr || place->stripe->manifest.stripe == manifest.stripe) co_return false;
    others.emplace(place->stripe->manifest.stripe, place->stripe);
  }
  for (const auto& [id, other] : others) {
    const bool whole = co_await targets_.IsWhole(other->manifest);
    if (!whole) co_return false;
  }
  // None was removed while the targets were asked.
  co_return std::all_of(others.begin(), others.end(), [this](const auto& other) {
    return judge_.WhyNot(*other.second) == MissReason::kNone;
  });
}

Task<Status> HomeIndex::PublishFirst(IndexedStripe stripe, Durability durability) {
  const RunKey key{stripe.manifest.space, stripe.manifest.run};
  while (first_.contains(key)) {
    const std::shared_ptr<Event> other = first_[key];
    Event& done = *other;
    co_await done;
  }
  const auto done = std::make_shared<Event>(loop_);
  first_.emplace(key, done);
  std::vector<BlockId> wanted;
  for (const ManifestBlock& block : stripe.manifest.blocks) wanted.push_back(block.id);
  const auto run = co_await Load(key, wanted);
  Status outcome = run.status();
  if (run.ok()) {
    const bool stored = co_await HasAllWhole(run.value(), stripe.manifest);
    if (stored) outcome = Status(Code::kConflict, "another writer stored these blocks first");
  }
  if (outcome.ok()) outcome = co_await Publish(std::move(stripe), durability);
  first_.erase(key);
  done->Set();
  co_return outcome;
}

Task<Status> HomeIndex::FileWithReplicas(const IndexedStripe& stripe, Durability durability) {
  const Manifest& manifest = stripe.manifest;
  const std::vector<TargetId> order = placement_.ReplicaOrder(manifest.space, manifest.run);
  const size_t wanted = std::min<size_t>(kIndexReplicas, order.size());
  const size_t needed = std::min<size_t>(2, order.size());
  size_t acknowledged = 0;
  size_t next = 0;
  Status failure(Code::kUnavailable, "no target takes index records");
  while (acknowledged < needed && next < order.size()) {
    std::vector<std::pair<TargetId, Task<Status>>> calls;
    while (next < order.size() && acknowledged + calls.size() < wanted) {
      const TargetId id = order[next++];
      TargetPort* port = targets_.Find(id);
      if (port == nullptr || !targets_.IsLive(id)) continue;
      calls.emplace_back(id, port->Publish(stripe, durability));
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

std::vector<TargetPort*> HomeIndex::RefilersOf(const StripeName& name) const {
  const std::vector<TargetId> order = placement_.ReplicaOrder(name.space, name.run);
  std::vector<TargetPort*> ports;
  for (size_t i = 0; i < order.size(); ++i) {
    TargetPort* port = targets_.Find(order[i]);
    if (port != nullptr && (i < kIndexReplicas || port->MayHaveFiled(name.stripe))) {
      ports.push_back(port);
    }
  }
  return ports;
}

Task<Status> HomeIndex::Adopt(IndexedStripe stripe) {
  const Manifest& manifest = stripe.manifest;
  const StripeId id = manifest.stripe;
  const bool busy = gone_.IsGoing(id) || publishing_.contains(id) || republishing_.contains(id);
  const bool over = clock_.UnixNow() >= stripe.expires_at || spaces_.IsDeleted(manifest.space);
  if (busy || over || StateOf(id)) co_return Status();
  const std::span<TargetPort* const> filers = placement_.FilersOf(id);
  publishing_.insert(id);
  Status outcome(Code::kUnavailable, "no target here takes index records");
  for (TargetPort* port : placement_.NearTargets()) {
    if (std::find(filers.begin(), filers.end(), port) == filers.end()) continue;
    outcome = co_await port->Publish(stripe, Durability::kProcess);
    break;
  }
  publishing_.erase(id);
  if (!outcome.ok() || gone_.IsGoing(id)) co_return outcome;
  CountIn(id);
  const RunKey key{manifest.space, manifest.run};
  NoteChange(key);
  cache_.Add(key, std::move(stripe));
  co_return Status();
}

Task<Status> HomeIndex::Republish(IndexedStripe stripe) {
  const Manifest& manifest = stripe.manifest;
  const StripeId id = manifest.stripe;
  const StripeName name{manifest.space, manifest.run, id};
  if (ReportOn(id).kind == StripeReport::Kind::kAbsent) co_return Status(Code::kNotFound);
  const std::vector<TargetPort*> ports = RefilersOf(name);
  const size_t needed = std::min<size_t>(2, placement_.ReplicaOrder(name.space, name.run).size());
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
  if (acknowledged < needed) co_return failure;
  co_return Status();
}

Task<Result<KnownRunPtr>> HomeIndex::Load(RunKey key, std::span<const BlockId> wanted) {
  const KnownRunPtr known = cache_.Find(key);
  if (known != nullptr && (known->complete || judge_.AllUsable(*known, wanted))) co_return known;
  const RunReader::Ask ask = settled_ ? RunReader::Ask::kReplicas : RunReader::Ask::kUntilFound;
  co_return co_await LoadAnew(key, wanted, ask);
}

Task<Result<KnownRunPtr>> HomeIndex::LoadAll(RunKey key) {
  const std::span<const BlockId> any;
  co_return co_await LoadAnew(key, any, RunReader::Ask::kAll);
}

Task<Result<KnownRunPtr>> HomeIndex::LoadAnew(RunKey key, std::span<const BlockId> wanted,
                                              RunReader::Ask ask) {
  for (uint32_t attempt = 0;; ++attempt) {
    Loading& loading = loading_[key];  // A std::map: stays where it is.
    ++loading.readers;
    const uint64_t changes_before = loading.changes;
    auto run = co_await reader_.Read(key, wanted, ask);
    const bool changed = loading.changes != changes_before;
    if (--loading.readers == 0) loading_.erase(key);
    if (!run.ok()) co_return run.status();
    for (const auto& [stripe, its_run] : hidden_) {
      if (its_run == key) run.value().Remove(stripe);
    }
    // What was published or removed while we read may be wrong in what we read.
    if (changed && attempt + 1 < kReadAttempts) continue;
    // A replica that is not known to have all proves nothing by what it lacks.
    KnownRun& found = run.value();
    if (!tenure_.Of(GroupHashOf(key.space, key.run)).whole) found.complete = found.answered_by_all;
    const KnownRunPtr kept = cache_.Insert(key, std::move(run).value());
    if (changed) kept->complete = false;
    co_return kept;
  }
}

void HomeIndex::Show(const std::vector<StripeId>& stripes) {
  for (const StripeId& stripe : stripes) {
    const auto hidden = hidden_.find(stripe);
    if (hidden == hidden_.end() || publishing_.contains(stripe)) continue;
    NoteChange(hidden->second);
    cache_.Forget(hidden->second);
    hidden_.erase(hidden);
  }
}

std::vector<StripeId> HomeIndex::Hidden() const {
  std::vector<StripeId> stripes;
  for (const auto& [stripe, run] : hidden_) stripes.push_back(stripe);
  return stripes;
}

void HomeIndex::Touch(KnownStripe& stripe) {
  const std::optional<StripeUse> use = stripe.NoteHit(clock_.UnixNow());
  if (!use) return;
  for (TargetPort* port : placement_.FilersOf(stripe.manifest.stripe)) {
    port->Touch(stripe.manifest.stripe, *use);
  }
}

void HomeIndex::NoteUse(const StripeName& name, const StripeUse& use) {
  for (TargetPort* port : placement_.FilersOf(name.stripe)) port->Touch(name.stripe, use);
  const KnownRunPtr run = cache_.Find({name.space, name.run});
  const KnownStripePtr known = run == nullptr ? nullptr : FindIn(*run, name.stripe);
  if (known != nullptr) known->expires_at = std::max(known->expires_at, use.expires_at);
}

std::optional<StripeState> HomeIndex::StateOf(StripeId stripe) const {
  std::optional<StripeState> newest;
  for (const TargetPort* port : placement_.FilersOf(stripe)) {
    const std::optional<StripeState> state = port->StateOf(stripe);
    if (!state) continue;
    if (!newest) {
      newest = state;
      continue;
    }
    newest->expires_at = std::max(newest->expires_at, state->expires_at);
    newest->last_access = std::max(newest->last_access, state->last_access);
    newest->keep_until = std::max(newest->keep_until, state->keep_until);
    newest->hit = newest->hit || state->hit;
  }
  return newest;
}

bool HomeIndex::IsHeld(StripeId stripe) const {
  if (clock_.Now() < TenureOf(stripe).evicts_from) return true;
  if (leases_.IsLeased(stripe, clock_.Now())) return true;
  const std::optional<StripeState> state = StateOf(stripe);
  return state && state->keep_until > NowSeconds();
}

void HomeIndex::CountIn(StripeId stripe) {
  const std::optional<StripeState> state = StateOf(stripe);
  if (!state) return;
  const SpaceRecord* space = spaces_.Find(state->space);
  ledger_.Add(state->space, {state->payload_bytes, state->keep_until},
              space == nullptr ? KeepLimits{} : LimitsOf(*space), NowSeconds());
}

Task<Status> HomeIndex::Keep(KnownStripePtr stripe, uint32_t keep_until, KeepLimits limits) {
  const StripeId id = stripe->manifest.stripe;
  const std::optional<StripeState> state = StateOf(id);
  if (!state || gone_.IsGoing(id)) co_return Status(Code::kNotFound);
  // Until the promise is counted and every replica has it in memory nothing is awaited.
  KV_CO_RETURN_IF_ERROR(ledger_.Raise(state->space, {state->payload_bytes, state->keep_until},
                                      keep_until, limits, NowSeconds()));
  const UnixMillis end{int64_t{keep_until} * 1000};
  stripe->expires_at = std::max({stripe->expires_at, state->expires_at, end});
  const StripeUse use{.expires_at = stripe->expires_at,
                      .last_access = NowSeconds(),
                      .keep_until = keep_until};
  std::vector<Task<Status>> calls;
  for (TargetPort* port : placement_.FilersOf(id)) {
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

Task<Status> HomeIndex::Remove(StripeName name, MissReason reason) {
  const RunKey key{name.space, name.run};
  KnownStripePtr known;
  if (reason == MissReason::kAbsent) {
    const KnownRunPtr run = cache_.Find(key);  // Tells where the shards are.
    if (run != nullptr) known = FindIn(*run, name.stripe);
  } else {
    // For the reason of later misses; without the run at hand the misses are just kAbsent.
    const std::vector<BlockId> any;
    auto run = co_await Load(key, any);
    // From here until the cache calls it gone nothing is awaited: no lookup comes between.
    if (reason == MissReason::kEvicted && IsHeld(name.stripe)) {
      co_return Status(Code::kConflict, "leased");
    }
    if (run.ok()) known = FindIn(*run.value(), name.stripe);
    if (known != nullptr) gone_.Remember(known->manifest, reason);
  }
  hidden_.erase(name.stripe);
  leases_.Forget(name.stripe);
  lacking_.Forget(name.stripe);
  const bool is_first = gone_.Begin(name.stripe, reason);
  const std::optional<StripeState> state = StateOf(name.stripe);
  if (is_first && state && !publishing_.contains(name.stripe)) {
    ledger_.Remove(state->space, {state->payload_bytes, state->keep_until}, NowSeconds());
  }
  const auto republishing = republishing_.find(name.stripe);
  if (republishing != republishing_.end()) republishing->second = true;
  Status outcome = co_await TakeOut(name, std::move(known));
  if (!is_first) co_return RemovedOr(outcome);  // Another call does the same; it counts.
  gone_.End(name.stripe);
  if (reason == MissReason::kEvicted) ++stats_.evicted_stripes;
  if (reason == MissReason::kExpired) ++stats_.expired_stripes;
  co_return RemovedOr(outcome);
}

Task<Status> HomeIndex::TakeOut(StripeName name, KnownStripePtr known) {
  const RunKey key{name.space, name.run};
  NoteChange(key);
  cache_.Remove(key, name.stripe);
  std::vector<Task<Status>> calls;
  for (TargetPort* port : placement_.FilersOf(name.stripe)) {
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
  for (TargetPort* port : placement_.HoldersOf(known == nullptr ? nullptr : &known->manifest)) {
    calls.push_back(port->Drop(name.stripe));
  }
  for (Task<Status>& call : calls) {
    Status dropped = co_await call;
    if (!dropped.ok()) outcome = std::move(dropped);
  }
  co_return outcome;
}

// --- What is asked of stripes ---

bool HomeIndex::IsSure(StripeId stripe) const {
  const std::span<TargetPort* const> filers = placement_.FilersOf(stripe);
  const bool elsewhere = std::any_of(filers.begin(), filers.end(), [&](auto* port) {
    return port->MayHaveFiled(stripe);
  });
  return !elsewhere || (settled_ && TenureOf(stripe).whole);
}

StripeReport HomeIndex::ReportOn(StripeId stripe) const {
  if (gone_.IsGoing(stripe)) return {.kind = StripeReport::Kind::kAbsent};
  const std::optional<StripeState> state = StateOf(stripe);
  if (state) {
    return {.kind = StripeReport::Kind::kFiled, .held = IsHeld(stripe), .state = *state};
  }
  const bool sure = IsSure(stripe);
  return {.kind = sure ? StripeReport::Kind::kAbsent : StripeReport::Kind::kUnknown};
}

Task<std::vector<StripeReport>> HomeIndex::StatesOf(std::vector<StripeId> stripes) {
  std::vector<StripeReport> reports;
  reports.reserve(stripes.size());
  for (const StripeId& stripe : stripes) reports.push_back(ReportOn(stripe));
  co_return reports;
}

Task<Result<StripeName>> HomeIndex::NameOf(StripeId stripe) {
  const std::span<TargetPort* const> filers = placement_.FilersOf(stripe);
  const std::vector<TargetPort*> ports(filers.begin(), filers.end());
  Status failure(Code::kNotFound);
  for (TargetPort* port : ports) {
    if (!port->MayHaveFiled(stripe)) continue;
    auto name = co_await port->NameOf(stripe);
    if (name.ok()) co_return name;
    if (name.code() == Code::kUnavailable) failure = name.status();
  }
  co_return failure;
}

Task<Result<FiledStripe>> HomeIndex::FindFiled(StripeId stripe) {
  const auto name = co_await NameOf(stripe);
  if (!name.ok()) co_return name.status();
  const StripeName filed = name.value();
  const std::span<TargetPort* const> filers = placement_.FilersOf(stripe);
  const std::vector<TargetPort*> ports(filers.begin(), filers.end());
  std::optional<FiledStripe> best;
  for (TargetPort* port : ports) {
    if (!port->MayHaveFiled(stripe)) continue;
    auto run = co_await port->LookUp(filed.space, filed.run);
    if (!run.ok()) continue;
    for (IndexedStripe& one : run.value()) {
      if (one.manifest.stripe != stripe) continue;
      if (!best) {
        best = FiledStripe{.stripe = std::move(one), .uneven = false};
      } else {
        best->Merge(std::move(one));
      }
    }
  }
  if (!best) co_return Status(Code::kNotFound);
  co_return std::move(*best);
}

// --- Leases ---

Task<LeaseGrant> HomeIndex::Grant(std::vector<LeaseTable::Stripe> stripes, LeaseOrder order) {
  LeaseGrant grant;
  std::vector<LeaseTable::Stripe> leased;
  UnixMillis expiry{INT64_MAX};
  for (const LeaseTable::Stripe& stripe : stripes) {
    const StripeReport report = ReportOn(stripe.id);
    if (report.kind != StripeReport::Kind::kFiled) {
      grant.gone.push_back(stripe.id);
      continue;
    }
    if (clock_.Now() < TenureOf(stripe.id).leases_from) co_return LeaseGrant{};
    leased.push_back(stripe);
    expiry = std::min(expiry, report.state.expires_at);
  }
  // The calendar's expiry on the steady clock, as of now.
  constexpr int64_t kFar = 1'000'000'000;  // Milliseconds, well beyond any lease.
  const int64_t left = std::min(expiry.value - clock_.UnixNow().value, kFar);
  const Instant now = clock_.Now();
  const Instant end =
      expiry.value - kFar > clock_.UnixNow().value ? kNever : now + Millis(left);
  grant.lease = leases_.Grant(order.session, leased, order.duration, end, now);
  grant.left = leases_.Left(grant.lease, now);
  co_return std::move(grant);
}

Task<std::vector<Status>> HomeIndex::Renew(std::vector<LeaseId> leases, LeaseOrder order) {
  std::vector<Status> outcomes;
  for (const LeaseId& lease : leases) {
    outcomes.push_back(leases_.Renew(lease, order.session, order.duration, clock_.Now()));
  }
  co_return outcomes;
}

Task<Status> HomeIndex::Release(std::vector<LeaseId> leases, SessionId session) {
  for (const LeaseId& lease : leases) leases_.Release(lease, session, clock_.Now());
  co_return Status();
}

void HomeIndex::NoteChange(const RunKey& key) {
  const auto found = loading_.find(key);
  if (found != loading_.end()) ++found->second.changes;
}

}  // namespace cairn::kv
