// Runs: who is asked, what is remembered for a moment, and what is done when nobody answers.
#include "kvstore/home/remote_index.h"

#include <algorithm>

#include "kvstore/home/remote_call.h"

namespace cairn::kv {

using home::Empty;
using home::Extent;
using home::Verb;

namespace {

constexpr size_t kUsedMax = 65'536;

uint16_t HashOf(const RunKey& key) { return GroupHashOf(key.space, key.run); }

}  // namespace

RemoteIndex::RemoteIndex(Parts parts, RemoteIndexOptions options)
    : parts_(parts),
      options_(options),
      reader_(parts.targets, parts.placement, parts.own.judge()),
      cache_(options.cache_bytes_max),
      pace_(options.pace),
      background_(parts.loop) {}

// --- Writing ---

Task<Status> RemoteIndex::Publish(IndexedStripe stripe, Durability durability) {
  const RunKey key{stripe.manifest.space, stripe.manifest.run};
  if (IsOwn(HashOf(key))) {
    co_return co_await parts_.own.PublishFirst(std::move(stripe), durability);
  }
  home::FileRequest request;
  request.stripe = std::move(stripe);
  request.durability = durability;
  const auto filed = co_await AskHome<Empty>(HashOf(key), Verb::kPublish, std::move(request));
  cache_.Forget(key);
  co_return filed.status();
}

Task<Status> RemoteIndex::Republish(IndexedStripe stripe) {
  const RunKey key{stripe.manifest.space, stripe.manifest.run};
  if (IsOwn(HashOf(key))) co_return co_await parts_.own.Republish(std::move(stripe));
  home::FileRequest request;
  request.stripe = std::move(stripe);
  const auto filed = co_await AskHome<Empty>(HashOf(key), Verb::kRepublish, std::move(request));
  cache_.Forget(key);
  co_return filed.status();
}

Task<Status> RemoteIndex::Remove(StripeName name, MissReason reason) {
  const uint16_t hash = GroupHashOf(name.stripe);
  if (IsOwn(hash)) co_return co_await parts_.own.Remove(name, reason);
  const home::RemoveRequest request{.name = name, .reason = reason};
  const auto removed = co_await AskHome<Empty>(hash, Verb::kRemove, request);
  if (removed.ok()) cache_.Remove({name.space, name.run}, name.stripe);
  co_return removed.status();
}

// --- Reading ---

Task<Result<KnownRunPtr>> RemoteIndex::Load(RunKey key, std::span<const BlockId> wanted) {
  if (IsOwn(HashOf(key))) co_return co_await parts_.own.Load(key, wanted);
  const KnownRunPtr known = cache_.Find(key);
  const bool is_fresh = known != nullptr && parts_.clock.Now() - known->loaded_at <
                                                options_.cache_age_max;
  // Of what it does not show, others may have put something since. What it shows may be gone: then
  // whoever reads it asks for all again.
  if (is_fresh && judge().AllUsable(*known, wanted)) {
    known->complete = false;
    co_return known;
  }
  co_return co_await LoadAnew(key, wanted, Extent::kWanted);
}

Task<Result<KnownRunPtr>> RemoteIndex::LoadAll(RunKey key) {
  if (IsOwn(HashOf(key))) co_return co_await parts_.own.LoadAll(key);
  const std::vector<BlockId> any;
  co_return co_await LoadAnew(key, any, Extent::kAll);
}

Task<Result<KnownRunPtr>> RemoteIndex::LoadFiled(RunKey key) {
  if (IsOwn(HashOf(key))) co_return co_await parts_.own.LoadFiled(key);
  const std::vector<BlockId> any;
  co_return co_await LoadAnew(key, any, Extent::kFiled);
}

// Shared by whoever waits for the home's answer and by what brings it.
struct RemoteIndex::Loading {
  explicit Loading(Loop& loop) : done(loop) {}
  Event done;
  Result<home::LoadAnswer> answer = Status(Code::kUnavailable);
  KnownRunPtr beside;  // Not null: what the replicas beside the home have is enough.
};

Task<void> RemoteIndex::AskInto(std::shared_ptr<Loading> loading, home::LoadRequest request) {
  const uint16_t hash = HashOf(request.key);
  const NodeId home = HomeOf(hash);
  const Instant began = parts_.clock.Now();
  pace_.Begin(home, began);
  loading->answer = co_await AskHome<home::LoadAnswer>(hash, Verb::kLoad, std::move(request));
  const Instant ended = parts_.clock.Now();
  if (loading->answer.ok()) {
    pace_.End(home, 0, ended - began, ended);
  } else {
    pace_.Fail(home, ended);
  }
  loading->done.Set();
}

Task<Result<KnownRunPtr>> RemoteIndex::LoadAnew(RunKey key, std::span<const BlockId> wanted,
                                                Extent extent) {
  if (background_.closed()) co_return Status(Code::kUnavailable, "this node is stopping");
  const bool all = extent != Extent::kWanted;
  home::LoadRequest request{.key = key, .extent = extent};
  request.wanted.assign(wanted.begin(), wanted.end());
  const Instant asked_at = parts_.clock.Now();  // An answer may have lain here for long.
  const auto loading = std::make_shared<Loading>(parts_.loop);
  background_.Hold(AskInto(loading, std::move(request)));
  Event& done = loading->done;
  const Nanos patience = PatienceWith(HomeOf(HashOf(key)));
  if (!all) co_await parts_.clock.SleepUntil(parts_.clock.Now() + patience, &done);
  if (!all && !done.is_set() && !background_.closed()) {
    const std::vector<BlockId> blocks(wanted.begin(), wanted.end());
    background_.Hold(FindInto(loading, key, blocks));
  }
  co_await done;
  if (loading->beside != nullptr) co_return loading->beside;
  Result<home::LoadAnswer>& answer = loading->answer;
  if (answer.ok()) {
    KnownRun run = Learn(key, wanted, std::move(answer).value());
    run.loaded_at = asked_at;
    if (extent == Extent::kFiled) co_return std::make_shared<KnownRun>(std::move(run));
    co_return cache_.Insert(key, std::move(run));
  }
  // Who deletes has to know of all; and only the home removes.
  if (answer.code() != Code::kUnavailable || extent == Extent::kFiled) co_return answer.status();
  const RunReader::Ask ask = all ? RunReader::Ask::kAll : RunReader::Ask::kUntilFound;
  auto read = co_await reader_.Read(key, wanted, ask);
  if (!read.ok()) co_return answer.status();
  const auto run = std::make_shared<KnownRun>(std::move(read).value());
  // Which replicas have all, only the home knows: what these lack may yet be there.
  run->complete = run->answered_by_all;
  co_return run;
}

Task<void> RemoteIndex::FindInto(std::shared_ptr<Loading> loading, RunKey key,
                                 std::vector<BlockId> wanted) {
  KnownRunPtr hit = co_await FindBesideHome(key, wanted);
  if (hit == nullptr || loading->done.is_set()) co_return;
  loading->beside = std::move(hit);
  loading->done.Set();
}

Nanos RemoteIndex::PatienceWith(NodeId home) const {
  return pace_.IsSlow(home) && pace_.FewAreSlow() ? Nanos{0} : options_.late_after;
}

Task<KnownRunPtr> RemoteIndex::FindBesideHome(RunKey key, std::span<const BlockId> wanted) {
  auto read = co_await reader_.Read(key, wanted, RunReader::Ask::kOthers);
  if (!read.ok() || !judge().AllUsable(read.value(), wanted)) co_return nullptr;
  const auto run = std::make_shared<KnownRun>(std::move(read).value());
  run->complete = false;
  co_return run;
}

KnownRun RemoteIndex::Learn(const RunKey& key, std::span<const BlockId> wanted,
                            home::LoadAnswer answer) {
  KnownRun run;
  for (IndexedStripe& stripe : answer.stripes) run.Add(std::move(stripe));
  run.complete = answer.complete;
  run.answered_by_all = answer.answered_by_all;
  for (size_t i = 0; i < std::min(wanted.size(), answer.reasons.size()); ++i) {
    const MissReason reason = answer.reasons[i];
    const bool tells = reason == MissReason::kEvicted || reason == MissReason::kExpired;
    if (tells && run.Find(wanted[i]).empty()) {
      parts_.own.gone().Remember(key.space, wanted[i], reason);
    }
  }
  for (const KnownStripePtr& stripe : run.stripes()) parts_.own.gone().Forget(stripe->manifest);
  return run;
}

Task<std::vector<StripeReport>> RemoteIndex::StatesOf(std::vector<StripeId> stripes) {
  std::vector<StripeReport> reports(stripes.size());
  std::map<NodeId, std::vector<size_t>> by_home;
  for (size_t i = 0; i < stripes.size(); ++i) {
    by_home[HomeOf(GroupHashOf(stripes[i]))].push_back(i);
  }
  std::vector<Task<void>> calls;
  for (auto& [home, places] : by_home) {
    for (size_t begin = 0; begin < places.size(); begin += home::kStripesMax) {
      const auto from = places.begin() + static_cast<ptrdiff_t>(begin);
      const size_t count = std::min(home::kStripesMax, places.size() - begin);
      std::vector<size_t> batch(from, from + static_cast<ptrdiff_t>(count));
      calls.push_back(AskStates(home, stripes, std::move(batch), reports));
    }
  }
  for (Task<void>& call : calls) co_await call;
  co_return std::move(reports);
}

Task<void> RemoteIndex::AskStates(NodeId home, const std::vector<StripeId>& stripes,
                                  std::vector<size_t> places,
                                  std::vector<StripeReport>& reports) {
  home::StatesRequest request;
  for (const size_t place : places) request.stripes.push_back(stripes[place]);
  std::vector<StripeReport> answered;
  if (home == parts_.map.self()) {
    answered = co_await parts_.own.StatesOf(std::move(request.stripes));
  } else {
    auto answer = co_await Ask<home::StatesAnswer>(home, Verb::kStates, std::move(request));
    if (!answer.ok()) co_return;
    answered = std::move(answer.value().reports);
  }
  if (answered.size() != places.size()) co_return;
  for (size_t i = 0; i < places.size(); ++i) reports[places[i]] = answered[i];
}

Task<Result<StripeName>> RemoteIndex::NameOf(StripeId stripe) {
  const uint16_t hash = GroupHashOf(stripe);
  if (IsOwn(hash)) co_return co_await parts_.own.NameOf(stripe);
  const home::NameRequest request{.stripe = stripe};
  const auto answer = co_await AskHome<home::NameAnswer>(hash, Verb::kName, request);
  if (!answer.ok()) co_return answer.status();
  co_return answer.value().name;
}

// --- Use ---

void RemoteIndex::Touch(KnownStripe& stripe) {
  const StripeId id = stripe.manifest.stripe;
  if (IsOwn(GroupHashOf(id))) return parts_.own.Touch(stripe);
  const std::optional<StripeUse> use = stripe.NoteHit(parts_.clock.UnixNow());
  if (!use || (used_.size() >= kUsedMax && !used_.contains(id))) return;
  const StripeName name{stripe.manifest.space, stripe.manifest.run, id};
  used_.insert_or_assign(id, home::UseRequest::Hit{.name = name, .use = *use});
}

void RemoteIndex::NoteLacking(StripeId stripe) {
  if (IsOwn(GroupHashOf(stripe))) return parts_.own.NoteLacking(stripe);
  lacking_.Note(stripe);
}

Task<void> RemoteIndex::SendUse() {
  std::map<NodeId, home::UseRequest> requests;
  for (const StripeId& stripe : lacking_.Take(home::kStripesMax)) {
    requests[HomeOf(GroupHashOf(stripe))].lacking.push_back(stripe);
  }
  for (const auto& [stripe, hit] : std::exchange(used_, {})) {
    const NodeId home = HomeOf(GroupHashOf(stripe));
    std::vector<home::UseRequest::Hit>& hits = requests[home].hits;
    if (hits.size() < home::kStripesMax) hits.push_back(hit);
  }
  for (auto& [home, request] : requests) {
    const std::vector<StripeId> lacking = request.lacking;
    const auto told = co_await Ask<Empty>(home, Verb::kUse, std::move(request));
    if (told.ok()) continue;  // Hits that are lost cost a little recency.
    for (const StripeId& stripe : lacking) NoteLacking(stripe);
  }
}

Task<Status> RemoteIndex::Keep(KnownStripePtr stripe, uint32_t keep_until, KeepLimits limits) {
  const Manifest& manifest = stripe->manifest;
  const uint16_t hash = GroupHashOf(manifest.stripe);
  if (IsOwn(hash)) co_return co_await parts_.own.Keep(stripe, keep_until, limits);
  const home::KeepRequest request{.name = {manifest.space, manifest.run, manifest.stripe},
                                  .keep_until = keep_until,
                                  .limits = limits};
  const auto kept = co_await AskHome<Empty>(hash, Verb::kKeep, request);
  const UnixMillis end{int64_t{keep_until} * 1000};
  if (kept.ok()) stripe->expires_at = std::max(stripe->expires_at, end);
  co_return kept.status();
}

}  // namespace cairn::kv
