// Two loops: one keeps the lease and what lies under it, one follows the map.
#include "kvstore/control/agent.h"

#include <algorithm>
#include <utility>

namespace cairn::kv {
namespace {

constexpr Nanos kPauseMax = Seconds(1);
constexpr Nanos kWatchMax = Seconds(30);
// The lease is refreshed this many times in its length, and distrusted this part of it early.
constexpr int64_t kRefreshes = 4;
constexpr int64_t kClockError = 10;

Nanos Part(Nanos span, int64_t of) { return {span.value / of}; }

}  // namespace

Agent::Agent(Loop& loop, Clock& clock, ControlStore& store, Random& random, Log& log,
             AgentOptions options, OnMap on_map)
    : clock_(clock), store_(store), random_(random), log_(log),
      options_(std::move(options)), keys_(options_.cluster), on_map_(std::move(on_map)),
      stopping_(loop), gate_(loop) {
  report_.instance = random_.Next();
}

Task<Status> Agent::Start(Instant deadline) {
  while (true) {
    Status begun;
    if (options_.self.id == kNoNode) begun = co_await DrawId(CallDeadline());
    if (begun.ok()) begun = co_await Register();
    if (begun.ok()) break;
    if (clock_.Now() >= deadline) co_return begun;
    co_await Pause(kPauseMax);
  }
  gate_.Hold(KeepLease());
  gate_.Hold(FollowMap());
  co_return Status();
}

Task<void> Agent::Stop() {
  stopping_.Set();
  co_await gate_.Close();
  const NodeLeaseId lease = std::exchange(lease_, NodeLeaseId());
  lease_until_ = Instant();
  if (lease == NodeLeaseId()) co_return;
  const Status revoked = co_await store_.Revoke(lease, CallDeadline());
  if (!revoked.ok()) log_.Info("control: the lease is left to run out: " + revoked.ToString());
}

void Agent::SetTargets(std::vector<TargetReport> targets) { report_.targets = std::move(targets); }
void Agent::SetWork(NodeWork work) { work_ = std::move(work); }
void Agent::SetUsage(UsageBySpace usage) { usage_ = std::move(usage); }
void Agent::SetSlow(std::optional<SlowReport> slow) { slow_ = std::move(slow); }

// A transaction whose answer was lost shows in the next try: the name is there.
Task<Status> Agent::DrawId(Instant deadline) {
  const std::string name_key = keys_.NodeName(options_.self.name);
  auto known = co_await store_.Range(name_key, deadline);
  if (!known.ok()) co_return known.status();
  if (!known.value().entries.empty()) {
    options_.self.id = {static_cast<uint32_t>(ControlKeys::IdOf(known.value().entries[0].value))};
    co_return Status();
  }
  auto counter = co_await store_.Range(keys_.NextNode(), deadline);
  if (!counter.ok()) co_return counter.status();
  const bool first = counter.value().entries.empty();
  const uint64_t id = first ? 1 : ControlKeys::IdOf(counter.value().entries[0].value);
  Compare new_name;
  new_name.key = name_key;
  Compare same_counter;
  same_counter.key = keys_.NextNode();
  same_counter.revision = first ? 0 : counter.value().entries[0].mod_revision;
  Change take;
  take.key = name_key;
  take.value = ControlKeys::Hex(id);
  Change advance;
  advance.key = same_counter.key;
  advance.value = ControlKeys::Hex(id + 1);
  Transaction transaction;
  transaction.compares = {new_name, same_counter};
  transaction.changes = {take, advance};
  auto outcome = co_await store_.Commit(std::move(transaction), deadline);
  if (!outcome.ok()) co_return outcome.status();
  if (!outcome.value().succeeded) co_return Status(Code::kUnavailable, "another node was faster");
  options_.self.id = {static_cast<uint32_t>(id)};
  co_return Status();
}

std::string Agent::Encoded() const {
  NodeReport report = report_;
  report.entry = options_.self;
  report.map_epoch = map_ != nullptr ? map_->epoch() : 0;
  return EncodeReport(report);
}

Change Agent::PutUnderLease(std::string key, std::string value) const {
  Change change;
  change.key = std::move(key);
  change.value = std::move(value);
  change.lease = lease_;
  return change;
}

// Takes a lease, and the node's place under it unless another process has that.
Task<Status> Agent::Register() {
  registered_ = false;
  const std::string key = keys_.Reports() + ControlKeys::Hex(id().value);
  auto there = co_await store_.Range(key, CallDeadline());
  if (!there.ok()) co_return there.status();
  Compare as_seen;
  as_seen.key = key;
  for (const KeyValue& entry : there.value().entries) {
    const auto other = DecodeReport(entry.value);
    const bool own = other.ok() && other.value().instance == report_.instance;
    if (!own) {
      co_return Status(Code::kConflict, "another process of node '" + options_.self.name +
                                            "' runs, or ran a moment ago");
    }
    as_seen.revision = entry.mod_revision;  // Ours, by a lease that we lost sight of.
  }
  const Instant asked_at = clock_.Now();
  auto granted = co_await store_.Grant(options_.lease_ttl, CallDeadline());
  if (!granted.ok()) co_return granted.status();
  lease_ = granted.value().id;
  const std::string report = Encoded();
  Transaction transaction;
  transaction.compares.push_back(as_seen);
  transaction.changes.push_back(PutUnderLease(key, report));
  auto outcome = co_await store_.Commit(std::move(transaction), CallDeadline());
  if (!outcome.ok()) co_return outcome.status();
  if (!outcome.value().succeeded) co_return Status(Code::kConflict, "another process was faster");
  written_.clear();
  written_[key] = report;
  refreshed_at_ = reported_at_ = asked_at;
  registered_ = true;
  lease_until_ = asked_at + options_.lease_ttl - Part(options_.lease_ttl, kClockError);
  co_return Status();
}

Task<Status> Agent::RefreshLease() {
  const Instant asked_at = clock_.Now();
  if (asked_at - refreshed_at_ < Part(options_.lease_ttl, kRefreshes)) co_return Status();
  Status kept = co_await store_.KeepAlive(lease_, CallDeadline());
  if (!kept.ok()) co_return kept;
  refreshed_at_ = asked_at;
  lease_until_ = asked_at + options_.lease_ttl - Part(options_.lease_ttl, kClockError);
  co_return Status();
}

Task<Status> Agent::WriteReports() {
  if (clock_.Now() - reported_at_ < options_.report_interval) co_return Status();
  const std::string suffix = ControlKeys::Hex(id().value);
  std::map<std::string, std::string> reports = {
      {keys_.Reports() + suffix, Encoded()},
      {keys_.Work() + suffix, EncodeWork(work_)},
      {keys_.Usage() + suffix, EncodeSpaceUsage(usage_)},
      {keys_.Slow() + suffix, slow_ ? EncodeSlow(*slow_) : ""}};
  Transaction transaction;
  for (const auto& [key, report] : reports) {
    const auto written = written_.find(key);
    if (written != written_.end() && written->second == report) continue;
    transaction.changes.push_back(PutUnderLease(key, report));
    if (report.empty()) transaction.changes.back().kind = Change::Kind::kDelete;
  }
  if (transaction.changes.empty()) co_return Status();
  const Instant begun_at = clock_.Now();
  auto outcome = co_await store_.Commit(std::move(transaction), CallDeadline());
  written_.clear();  // Of what failed, all may have been written or not.
  if (!outcome.ok()) co_return outcome.status();
  written_ = std::move(reports);
  reported_at_ = begun_at;
  co_return Status();
}

Task<void> Agent::KeepLease() {
  while (!stopping_.is_set()) {
    // A lease under which the report may not lie says nothing, so it is not kept.
    Status kept;
    if (!registered_) kept = co_await Register();
    if (kept.ok()) kept = co_await RefreshLease();
    if (kept.ok()) kept = co_await WriteReports();
    if (kept.code() == Code::kNotFound) {
      log_.Warning("control: this node's lease has run out; it takes a new one");
      lease_until_ = Instant();
      registered_ = false;
    }
    if (kept.ok()) {
      const Instant next = clock_.Now() + Part(options_.lease_ttl, 2 * kRefreshes);
      co_await clock_.SleepUntil(next, &stopping_);
    } else {
      log_.Debug("control: " + kept.ToString());
      co_await Pause(kPauseMax);
    }
  }
}

Task<void> Agent::FollowMap() {
  MapStore maps(store_, keys_);
  while (!stopping_.is_set()) {
    auto loaded = co_await maps.Load(CallDeadline());
    if (!loaded.ok()) {
      log_.Debug("control: the map cannot be read: " + loaded.status().ToString());
      co_await Pause(kPauseMax);
      continue;
    }
    const int64_t next = loaded.value().revision + 1;
    TakeMap(std::move(loaded.value().map));
    // Watched in pieces, so that Stop need not wait for long.
    bool changed = false;
    Instant watched_until = clock_.Now() + kWatchMax;
    while (!changed && !stopping_.is_set() && clock_.Now() < watched_until) {
      auto batch = co_await store_.Watch(keys_.MapHead(), next, CallDeadline());
      changed = !batch.ok() || !batch.value().events.empty();
      if (!batch.ok()) co_await Pause(kPauseMax);
    }
  }
}

void Agent::TakeMap(std::shared_ptr<const ClusterMap> map) {
  if (map == nullptr || (map_ != nullptr && map->epoch() <= map_->epoch())) return;
  map_ = std::move(map);
  if (on_map_) on_map_(map_);
}

// Up to `most`, so that many who wait for the same thing do not come back at once.
Task<void> Agent::Pause(Nanos most) {
  const Nanos drawn{static_cast<int64_t>(random_.Below(static_cast<uint64_t>(most.value)))};
  co_await clock_.SleepUntil(clock_.Now() + Millis(20) + drawn, &stopping_);
}

}  // namespace cairn::kv
