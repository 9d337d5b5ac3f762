// What is known of runs, and the one step in which a stripe stops to be seen.
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

// Nothing can be concluded from what did not come. A damaged record is as good as none.
bool SaysNothing(Code code) {
  return code != Code::kOk && code != Code::kNotFound && code != Code::kCorrupt;
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

Task<Result<KnownRunPtr>> HomeIndex::Load(RunKey key, std::span<const BlockId> wanted) {
  const KnownRunPtr known = KnownHere(key);
  if (known != nullptr && (known->complete || judge_.AllUsable(*known, wanted))) co_return known;
  const RunReader::Ask ask = settled_ ? RunReader::Ask::kReplicas : RunReader::Ask::kUntilFound;
  co_return co_await LoadAnew(key, wanted, ask);
}

Task<Result<KnownRunPtr>> HomeIndex::LoadAll(RunKey key) {
  const std::span<const BlockId> any;
  co_return co_await LoadAnew(key, any, RunReader::Ask::kAll);
}

Task<Result<KnownRunPtr>> HomeIndex::LoadFiled(RunKey key) {
  const std::span<const BlockId> any;
  auto run = co_await reader_.Read(key, any, RunReader::Ask::kPlaces);
  if (!run.ok()) co_return run.status();
  co_return std::make_shared<KnownRun>(std::move(run).value());
}

// A replica that is being filled may have what was put a moment ago, beside one that is away.
bool HomeIndex::AllAreSources(const RunKey& key) const {
  return placement_.Sources(key.space, key.run).size() ==
         placement_.ReplicaOrder(key.space, key.run).size();
}

// Another home may have filed and removed what it liked since an earlier tenure.
KnownRunPtr HomeIndex::KnownHere(const RunKey& key) {
  const KnownRunPtr known = cache_.Find(key);
  if (known == nullptr || known->tenure == TenureOf(key).since) return known;
  cache_.Forget(key);
  return nullptr;
}

Task<Result<KnownRunPtr>> HomeIndex::LoadAnew(RunKey key, std::span<const BlockId> wanted,
                                              RunReader::Ask ask) {
  for (uint32_t attempt = 0;; ++attempt) {
    Loading& loading = loading_[key];  // A std::map: stays where it is.
    ++loading.readers;
    const uint64_t changes_before = loading.changes;
    const uint64_t tenure = TenureOf(key).since;
    auto run = co_await reader_.Read(key, wanted, ask);
    const bool changed = loading.changes != changes_before;
    if (--loading.readers == 0) loading_.erase(key);
    if (!run.ok()) co_return run.status();
    for (const auto& [stripe, hidden] : hidden_) {
      if (hidden.run == key && hidden.tenure == tenure) run.value().Remove(stripe);
    }
    // What was published or removed while we read may be wrong in what we read.
    if (changed && attempt + 1 < kReadAttempts) continue;
    // A replica that is not known to have all proves nothing by what it lacks.
    KnownRun& found = run.value();
    if (!TenureOf(key).whole) found.complete = found.answered_by_all && AllAreSources(key);
    found.tenure = tenure;
    const KnownRunPtr kept = cache_.Insert(key, std::move(run).value());
    if (changed) kept->complete = false;
    co_return kept;
  }
}

void HomeIndex::Show(const std::vector<StripeId>& stripes) {
  for (const StripeId& stripe : stripes) {
    const auto hidden = hidden_.find(stripe);
    if (hidden == hidden_.end() || publishing_.contains(stripe)) continue;
    NoteChange(hidden->second.run);
    cache_.Forget(hidden->second.run);
    hidden_.erase(hidden);
  }
}

void HomeIndex::Settle(uint64_t unsettlings) {
  if (unsettlings == unsettlings_) settled_ = true;
}

std::vector<StripeId> HomeIndex::Hidden() const {
  std::vector<StripeId> stripes;
  for (const auto& [stripe, hidden] : hidden_) stripes.push_back(stripe);
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
  const KnownRunPtr run = KnownHere({name.space, name.run});
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
  if (saved < needed) co_return Status(Code::kUnavailable, failure.ToString());
  co_return Status();
}

Task<Status> HomeIndex::Remove(StripeName name, MissReason reason) {
  const RunKey key{name.space, name.run};
  const uint64_t tenure = TenureOf(key).since;
  KnownStripePtr known;
  if (reason == MissReason::kAbsent) {
    const KnownRunPtr run = KnownHere(key);  // Tells where the shards are.
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
  for (std::map<StripeId, bool>* filing : {&republishing_, &adopting_}) {
    const auto found = filing->find(name.stripe);
    if (found != filing->end()) found->second = true;
  }
  Status outcome = co_await TakeOut(name, std::move(known));
  if (TenureOf(key).since != tenure) outcome = HasMoved();
  if (!is_first) co_return RemovedOr(outcome);  // Another call does the same; it counts.
  gone_.End(name.stripe);
  if (reason == MissReason::kEvicted) ++stats_.evicted_stripes;
  if (reason == MissReason::kExpired) ++stats_.expired_stripes;
  co_return RemovedOr(outcome);
}

Task<Status> HomeIndex::WithdrawAll(StripeName name) {
  std::vector<Task<Status>> calls;
  for (TargetPort* port : placement_.FilersOf(name.stripe)) {
    if (port->MayHaveFiled(name.stripe)) calls.push_back(port->Withdraw(name));
  }
  Status outcome;
  for (Task<Status>& call : calls) {
    Status withdrawn = co_await call;
    const bool tells_more = outcome.code() != Code::kConflict;
    if (!withdrawn.ok() && tells_more) outcome = std::move(withdrawn);
  }
  co_return outcome;
}

Task<Status> HomeIndex::TakeOut(StripeName name, KnownStripePtr known) {
  const RunKey key{name.space, name.run};
  const uint64_t tenure = TenureOf(key).since;
  NoteChange(key);
  cache_.Remove(key, name.stripe);
  std::optional<Manifest> manifest;
  if (known != nullptr) manifest = known->manifest;
  Status unasked;
  const bool recovers = placement_.RecoversFromShards();
  if (!manifest && !recovers) {  // Only the manifest says where they are.
    auto filed = co_await FindFiled(name.stripe);
    if (filed.ok()) manifest = std::move(filed.value().stripe.manifest);
    if (SaysNothing(filed.code())) unasked = filed.status();
    if (TenureOf(key).since != tenure) co_return HasMoved();
  }
  Status outcome = co_await WithdrawAll(name);
  // Its shards are another home's.
  if (outcome.code() == Code::kConflict) co_return outcome;
  if (!unasked.ok()) outcome = std::move(unasked);
  NoteChange(key);
  cache_.Remove(key, name.stripe);
  if (on_removed_) on_removed_(name.stripe);
  std::vector<Task<Status>> calls;
  for (TargetPort* port : placement_.HoldersOf(manifest ? &*manifest : nullptr)) {
    calls.push_back(port->Drop(name.stripe));
  }
  for (Task<Status>& call : calls) {
    Status dropped = co_await call;
    if (!dropped.ok() && recovers) outcome = std::move(dropped);
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
    if (SaysNothing(name.code())) failure = name.status();
  }
  co_return failure;
}

Task<Result<FiledStripe>> HomeIndex::FindFiled(StripeId stripe) {
  std::vector<Task<Result<IndexedStripe>>> calls;
  for (TargetPort* port : placement_.FilersOf(stripe)) {
    if (port->MayHaveFiled(stripe)) calls.push_back(port->ReadFiled(stripe));
  }
  std::optional<FiledStripe> best;
  Status failure(Code::kNotFound);
  for (Task<Result<IndexedStripe>>& call : calls) {
    auto filed = co_await call;
    if (SaysNothing(filed.code())) failure = filed.status();
    if (!filed.ok()) continue;
    if (!best) {
      best = FiledStripe{.stripe = std::move(filed).value(), .uneven = false};
    } else {
      best->Merge(std::move(filed).value());
    }
  }
  if (!best) co_return failure;
  co_return std::move(*best);
}

bool HomeIndex::IsHomeOfAll(std::span<const StripeId> stripes) const {
  return std::all_of(stripes.begin(), stripes.end(),
                     [this](const StripeId& stripe) { return IsHome(stripe); });
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
    // The new home keeps what is leased no longer than a lease lasted when it came.
    if (!IsHomeOfAll(leases_.StripesOf(lease))) leases_.Release(lease, order.session, clock_.Now());
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
