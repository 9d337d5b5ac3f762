// Campaigns until elected; then reads all reports, plans, and publishes what changed.
#include "kvstore/control/coordinator.h"

#include <algorithm>
#include <utility>

#include "kvstore/control/member_reports.h"
#include "kvstore/control/node_report.h"

namespace cairn::kv {
namespace {

constexpr int64_t kRefreshes = 4;  // Of the lease, in its length.

}  // namespace

Coordinator::Coordinator(Loop& loop, Clock& clock, ControlStore& store, Random& random, Log& log,
                         CoordinatorOptions options)
    : clock_(clock), store_(store), random_(random), log_(log), options_(std::move(options)),
      keys_(options_.cluster), stopping_(loop), gate_(loop) {}

void Coordinator::Start() { gate_.Hold(Run()); }

Task<void> Coordinator::Stop() {
  stopping_.Set();
  co_await gate_.Close();
  const NodeLeaseId lease = std::exchange(lease_, NodeLeaseId());
  Depose();
  if (lease == NodeLeaseId()) co_return;
  const Status revoked = co_await store_.Revoke(lease, CallDeadline());
  if (!revoked.ok()) log_.Info("control: the election is left to run out");
}

Task<void> Coordinator::Run() {
  while (!stopping_.is_set()) {
    Status done;
    if (leads()) {
      done = co_await Step();
      if (!done.ok()) ++stats_.steps_failed;
    } else {
      done = co_await Campaign();
    }
    if (done.code() == Code::kConflict || done.code() == Code::kNotFound) Depose();
    if (!done.ok()) log_.Debug("control: coordinator: " + done.ToString());
    // Many wait for the same vacancy: they do not come all at once.
    const auto spread = static_cast<uint64_t>(options_.interval.value / 4);
    const Nanos jitter{static_cast<int64_t>(random_.Below(spread + 1))};
    co_await clock_.SleepUntil(clock_.Now() + options_.interval - jitter, &stopping_);
  }
}

void Coordinator::Depose() {
  if (guard_) log_.Info("control: this node coordinates no longer");
  guard_.reset();
  maps_.reset();
  membership_.reset();
  slow_.reset();
  set_aside_told_.clear();
  map_ = nullptr;
  at_rest_ = false;
}

Task<Status> Coordinator::Campaign() {
  auto leader = co_await store_.Range(keys_.Leader(), CallDeadline());
  if (!leader.ok()) co_return leader.status();
  int64_t elected = 0;
  if (leader.value().entries.empty()) {
    const Instant asked_at = clock_.Now();
    auto granted = co_await store_.Grant(options_.lease_ttl, CallDeadline());
    if (!granted.ok()) co_return granted.status();
    lease_ = granted.value().id;
    refreshed_at_ = asked_at;
    Compare vacant;
    vacant.key = keys_.Leader();
    vacant.field = Compare::Field::kCreateRevision;
    Change take;
    take.key = vacant.key;
    take.value = ControlKeys::Hex(options_.self.value);
    take.lease = lease_;
    Transaction transaction;
    transaction.compares.push_back(vacant);
    transaction.changes.push_back(std::move(take));
    auto outcome = co_await store_.Commit(std::move(transaction), CallDeadline());
    if (!outcome.ok()) co_return outcome.status();
    if (!outcome.value().succeeded) co_return Status();
    elected = outcome.value().revision;
  } else if (leader.value().entries[0].lease == lease_ && lease_ != NodeLeaseId()) {
    elected = leader.value().entries[0].create_revision;  // The answer had been lost.
  } else {
    co_return co_await AwaitVacancy(leader.value().revision);
  }
  Compare guard;
  guard.key = keys_.Leader();
  guard.field = Compare::Field::kCreateRevision;
  guard.revision = elected;
  guard_ = guard;
  maps_.emplace(store_, keys_);
  membership_.emplace(options_.membership);
  usage_at_ = clock_.Now();
  ++stats_.elections_won;
  log_.Info("control: this node coordinates the cluster");
  co_return Status();
}

Task<Status> Coordinator::AwaitVacancy(int64_t revision) {
  auto batch = co_await store_.Watch(keys_.Leader(), revision + 1, CallDeadline());
  co_return batch.ok() ? Status() : batch.status();
}

// kConflict or kNotFound: this one is not the coordinator any more.
Task<Status> Coordinator::RefreshLease() {
  const Instant asked_at = clock_.Now();
  const Nanos part{options_.lease_ttl.value / kRefreshes};
  if (asked_at - refreshed_at_ < part) co_return Status();
  Status kept = co_await store_.KeepAlive(lease_, CallDeadline());
  if (kept.ok()) refreshed_at_ = asked_at;
  co_return kept;
}

Task<Status> Coordinator::LoadMap() {
  auto loaded = co_await maps_->Load(CallDeadline());
  if (!loaded.ok()) {
    const bool damaged = loaded.code() == Code::kCorrupt;
    if (damaged) log_.Error("control: the cluster map is damaged: " + loaded.status().ToString());
    co_return loaded.status();
  }
  map_ = std::move(loaded.value().map);
  if (map_ != nullptr) co_return Status();
  KV_CO_ASSIGN_OR_RETURN(MapContent empty, EmptyMap(options_.shape));
  auto first = ClusterMap::Create(std::move(empty));
  if (!first.ok()) co_return first.status();
  KV_CO_RETURN_IF_ERROR(co_await maps_->Publish(first.value(), *guard_, CallDeadline()));
  map_ = std::move(first).value();
  ++stats_.maps_published;
  co_return Status();
}

// What the coordinator before had set aside stays so: the index does not wander back and forth
// when a coordinator dies.
Task<Status> Coordinator::LoadSetAside() {
  auto told = co_await store_.Range(keys_.SetAside(), CallDeadline());
  if (!told.ok()) co_return told.status();
  slow_.emplace(options_.slow);
  for (const KeyValue& entry : told.value().entries) {
    const auto named = DecodeSetAside(entry.value);
    if (!named.ok()) continue;  // They are found anew.
    slow_->Adopt(clock_.Now(), named.value());
    set_aside_told_.insert(named.value().begin(), named.value().end());
  }
  co_return Status();
}

Task<Status> Coordinator::PublishSetAside() {
  const std::set<TargetId> now = slow_->named();
  if (now == set_aside_told_) co_return Status();
  Status told = co_await CommitGuarded(keys_.SetAside(), EncodeSetAside(now));
  if (told.ok()) set_aside_told_ = now;
  co_return told;
}

Task<Status> Coordinator::Step() {
  KV_CO_RETURN_IF_ERROR(co_await RefreshLease());
  if (map_ == nullptr) KV_CO_RETURN_IF_ERROR(co_await LoadMap());
  if (!slow_) KV_CO_RETURN_IF_ERROR(co_await LoadSetAside());
  auto snapshot = co_await store_.Range(keys_.Members(), CallDeadline());
  if (!snapshot.ok()) co_return snapshot.status();
  MapContent next = PlanNext(snapshot.value());
  ++stats_.steps;
  const uint64_t epoch = std::exchange(next.epoch, map_->epoch());
  const bool changed = !(next == map_->content());
  next.epoch = epoch;
  if (changed) {
    auto map = ClusterMap::Create(std::move(next));
    KV_CHECK(map.ok());  // The planners keep what it checks.
    Status published = co_await maps_->Publish(map.value(), *guard_, CallDeadline());
    map_ = published.ok() ? map.value() : nullptr;
    if (!published.ok()) co_return published;
    ++stats_.maps_published;
  }
  KV_CO_RETURN_IF_ERROR(co_await PublishSetAside());
  co_return co_await PublishUsage();
}

// Places are planned only when something is other than it was when they came to rest: in a large
// cluster that costs most of a second.
MapContent Coordinator::PlanNext(const Snapshot& snapshot) {
  const MemberReports members = ReadMemberReports(snapshot, keys_, clock_.Now());
  MapContent next = map_->content();
  ++next.epoch;
  const MembershipNews news = membership_->Step(members.seen, next);
  TellNews(news);
  ForgetVacated(next, members.vacated);
  MarkFilled(next, members.filled);
  const std::set<TargetId> slow_before = slow_->named();
  if (news.stalled) slow_->NoteStall();
  slow_->Step(clock_.Now(), members.slow, next);
  TellSlow(slow_before);
  const MapContent& now = map_->content();
  const bool same = next.nodes == now.nodes && next.targets == now.targets &&
                    next.groups == now.groups && slow_->named() == slow_before;
  if (same && at_rest_) return next;
  PlanSets(next, options_.sets);
  PlanGroups(next, options_.groups, slow_->named());
  at_rest_ = same && next.sets == now.sets && next.groups == now.groups;
  return next;
}

Task<Status> Coordinator::PublishUsage() {
  if (clock_.Now() - usage_at_ < options_.usage_interval) co_return Status();
  usage_at_ = clock_.Now();
  auto snapshot = co_await store_.Range(keys_.Usage(), CallDeadline());
  if (!snapshot.ok()) co_return snapshot.status();
  UsageBySpace total;
  for (const KeyValue& entry : snapshot.value().entries) {
    const auto usage = DecodeSpaceUsage(entry.value);
    if (!usage.ok()) continue;
    for (const auto& [space, bytes] : usage.value()) total[space] += bytes;
  }
  co_return co_await CommitGuarded(keys_.UsageTotal(), EncodeSpaceUsage(total));
}

// kConflict: another one has been elected.
Task<Status> Coordinator::CommitGuarded(std::string key, std::string value) {
  Change put;
  put.key = std::move(key);
  put.value = std::move(value);
  Transaction transaction;
  transaction.compares.push_back(*guard_);
  transaction.changes.push_back(std::move(put));
  auto outcome = co_await store_.Commit(std::move(transaction), CallDeadline());
  if (!outcome.ok()) co_return outcome.status();
  co_return outcome.value().succeeded ? Status() : Status(Code::kConflict, "deposed");
}

void Coordinator::TellSlow(const std::set<TargetId>& before) {
  const std::set<TargetId>& now = slow_->named();
  const auto name = [&](TargetId id) {
    const TargetEntry* target = map_->FindTarget(id);
    const NodeEntry* node = target == nullptr ? nullptr : map_->FindNode(target->node);
    return "target " + std::to_string(id.value) +
           (node == nullptr ? "" : " of node '" + node->name + "'");
  };
  for (const TargetId id : now) {
    if (before.contains(id)) continue;
    log_.Warning("control: " + name(id) +
                 " is slow, most other nodes find: its part of the index goes to others");
  }
  for (const TargetId id : before) {
    if (now.contains(id)) continue;
    log_.Info("control: " + name(id) + " is not slow any more: it may hold a part of the index");
  }
}

void Coordinator::TellNews(const MembershipNews& news) {
  stats_.stalls += news.stalled ? 1 : 0;
  stats_.breaker_open = news.breaker_open;
  std::string words;
  if (news.breaker_open) {
    words = "too many nodes or targets are missing at once: none of them is given up. If they are "
            "gone for good, drain them.";
  }
  for (const std::string& refused : news.refused) words += " refused: " + refused;
  if (words != last_news_ && !words.empty()) log_.Warning("control: " + words);
  last_news_ = std::move(words);
}

}  // namespace cairn::kv
