// Opens the targets, recovers what was not published, and keeps house in the background.
#include "kvstore/node/node.h"

#include <algorithm>
#include <utility>

#include "kvstore/async/lanes.h"
#include "kvstore/node/index_view.h"
#include "kvstore/node/sole_surroundings.h"

namespace cairn::kv {
namespace {

// A shard record has a header with the manifest in front of the payload.
constexpr uint64_t kRecordOverheadMax = kManifestSizeMax + 4 * kSectorSize;
constexpr uint64_t kRecoveriesAtOnce = 16;

// A person must decide, or the configuration is wrong: nothing is served half.
bool IsFatal(const Status& status) {
  const Code code = status.code();
  return code == Code::kConflict || code == Code::kInvalid || code == Code::kNoSpace;
}

}  // namespace

Node::Node(NodeParts parts, NodeOptions options)
    : parts_(parts),
      options_(options),
      sole_(parts.surroundings == nullptr
                ? std::make_unique<SoleSurroundings>(parts.clock, parts.log)
                : nullptr),
      around_(parts.surroundings == nullptr ? *sole_ : *parts.surroundings),
      stopping_(parts.loop),
      background_(parts.loop) {}

Node::~Node() = default;

Task<Result<std::unique_ptr<Node>>> Node::Open(NodeParts parts, NodeOptions options) {
  std::unique_ptr<Node> node(new Node(parts, options));
  KV_CO_RETURN_IF_ERROR(co_await node->OpenTargets());
  Surroundings& around = node->around_;
  Status ready = co_await around.Join(node->targets_);
  if (ready.ok()) {
    node->MakeStore();
    node->MakePasses();
    // Until the replicas are compared, a miss is believed only after asking all of them.
    node->home_->index().Unsettle();
    ready = co_await node->store_->LoadSpaces();
    if (!ready.ok()) co_await around.Leave();
    if (!ready.ok()) co_await around.Close();
  }
  if (!ready.ok()) {
    for (const auto& target : node->targets_) (void)co_await target->log().Stop();
    co_return ready;
  }
  co_await node->ClearUp();
  around.Begin({.store = *node->store_,
                .home = *node->home_,
                .keeper = *node->reclaimer_,
                .repairer = *node->repairer_});
  node->background_.Hold(node->Maintain());
  co_return std::move(node);
}

// After a crash. In a cluster the homes of stripes know what is filed: the rest is garbage.
Task<void> Node::ClearUp() {
  if (!around_.sole()) {
    for (const auto& target : targets_) (void)target->log().TakeRecovered();
    co_return;
  }
  co_await ApplyRemovals();
  co_await Recover();
}

void Node::MakeStore() {
  uint64_t segment_size_min = kSegmentSizeMax;
  uint64_t capacity = 0;
  for (const auto& target : targets_) {
    const SegmentLogStats stats = target->log().stats();
    const uint64_t segments = std::max<uint64_t>(1, target->log().segments().size());
    capacity += stats.capacity_bytes;
    segment_size_min = std::min(segment_size_min, stats.capacity_bytes / segments);
  }
  HomeOptions home_options = options_.home;
  home_options.kept_bytes_max = capacity / 100 * options_.kept_percent_max;
  home_options.leases.bytes_max = capacity / 100 * options_.leased_percent_max;
  const Home::Parts home_parts{.loop = parts_.loop,
                               .clock = parts_.clock,
                               .random = parts_.random,
                               .log = parts_.log,
                               .targets = around_.targets(),
                               .placement = around_.placement(),
                               .tenure = around_.tenure()};
  home_ = std::make_unique<Home>(home_parts, home_options);
  const Reclaimer::Parts reclaimer_parts{
      .loop = parts_.loop, .clock = parts_.clock, .log = parts_.log, .targets = targets_};
  reclaimer_ = std::make_unique<Reclaimer>(reclaimer_parts, options_.reclaim);
  StripedStoreOptions store_options = options_.store;
  store_options.shard_size_max =
      AlignDown(segment_size_min - std::min(segment_size_min, kRecordOverheadMax), kSectorSize);
  store_options.capacity_bytes = capacity;
  store_options.target_away = !all_here();
  const StripedStoreParts store_parts{.loop = parts_.loop,
                                      .clock = parts_.clock,
                                      .workers = parts_.workers,
                                      .random = parts_.random,
                                      .log = parts_.log,
                                      .targets = around_.targets(),
                                      .placement = around_.placement(),
                                      .home = *home_,
                                      .index = around_.IndexOver(*home_),
                                      .space_store = around_.space_store(),
                                      .keeper = *reclaimer_,
                                      .network = around_.payload_memory()};
  store_ = std::make_unique<StripedStore>(store_parts, store_options);
  reclaimer_->Use(store_->index(), store_->writer(), store_->stats());
  window_ = std::make_unique<WindowStore>(parts_.clock, *store_, store_->stats(),
                                          options_.window_bytes);
}

void Node::MakePasses() {
  const StripeRestorer::Parts restorer_parts{.workers = parts_.workers,
                                             .random = parts_.random,
                                             .targets = around_.targets(),
                                             .placement = around_.placement(),
                                             .index = store_->index(),
                                             .keeper = *reclaimer_,
                                             .buffers = store_->reader().rebuilds(),
                                             .stats = store_->stats()};
  restorer_ = std::make_unique<StripeRestorer>(restorer_parts);
  const MaintenancePass::Parts pass_parts{.loop = parts_.loop,
                                          .clock = parts_.clock,
                                          .log = parts_.log,
                                          .targets = targets_,
                                          .index = home_->index(),
                                          .restorer = *restorer_};
  scrubber_ = std::make_unique<Scrubber>(pass_parts);
  Repairer::RepairIndex repair_index = [this](uint64_t& filed) {
    return around_.RepairIndex(filed);
  };
  repairer_ =
      std::make_unique<Repairer>(pass_parts, options_.repair, std::move(repair_index));
  repair_due_ = parts_.clock.Now() + options_.repair.first_after;
}

// All at the same time. Nothing is formatted before every superblock was seen.
Task<Status> Node::OpenTargets() {
  std::vector<Task<Result<TargetMedium>>> opening;
  for (uint32_t i = 0; i < parts_.media.count(); ++i) opening.push_back(OpenMedium(i));
  std::vector<Result<TargetMedium>> media;
  for (Task<Result<TargetMedium>>& medium : opening) media.push_back(co_await medium);
  Status failure;
  for (Result<TargetMedium>& medium : media) {
    Status outcome = medium.status();
    if (outcome.ok()) outcome = co_await SegmentLog::CheckVersion(*medium.value().disk);
    if (IsFatal(outcome) && !IsFatal(failure)) failure = std::move(outcome);
  }
  if (!failure.ok()) co_return failure;

  std::vector<Task<Result<std::unique_ptr<LocalTarget>>>> targets;
  for (uint32_t i = 0; i < media.size(); ++i) {
    targets.push_back(OpenTarget(i, std::move(media[i])));
  }
  for (uint32_t i = 0; i < targets.size(); ++i) {
    auto& opened = targets[i];
    auto target = co_await opened;
    if (target.ok()) {
      targets_.push_back(std::move(target).value());
      places_.push_back({.target = targets_.back().get()});
      continue;
    }
    if (!IsFatal(failure)) failure = target.status();
    if (IsFatal(target.status())) continue;
    parts_.log.Error("target " + std::to_string(i) + " is left out: " + target.status().ToString());
    places_.push_back({.target = nullptr, .why_lost = target.status()});
  }
  if (!IsFatal(failure) && !targets_.empty()) co_return Status();
  for (const auto& target : targets_) (void)co_await target->log().Stop();
  if (failure.ok()) co_return Status(Code::kInvalid, "a node needs at least one target");
  co_return failure;
}

Task<Result<TargetMedium>> Node::OpenMedium(uint32_t i) {
  auto medium = co_await parts_.media.Open(i);
  if (medium.code() == Code::kCorrupt) {
    medium = co_await parts_.media.ForgetMetadata(i, medium.status());
  }
  co_return medium;
}

Task<Result<std::unique_ptr<LocalTarget>>> Node::OpenTarget(uint32_t i,
                                                            Result<TargetMedium> medium) {
  if (!medium.ok()) co_return medium.status();
  auto target = co_await OpenOn(std::move(medium).value());
  if (target.code() != Code::kCorrupt) co_return std::move(target);
  auto blank = co_await parts_.media.Replace(i, target.status());
  if (!blank.ok()) co_return blank.status();
  co_return co_await OpenOn(std::move(blank).value());
}

Task<Result<std::unique_ptr<LocalTarget>>> Node::OpenOn(TargetMedium medium) {
  const SegmentLog::Parts log_parts{.loop = parts_.loop,
                                    .clock = parts_.clock,
                                    .workers = parts_.workers,
                                    .disk = *medium.disk,
                                    .metadata = *medium.metadata,
                                    .random = parts_.random,
                                    .log = parts_.log};
  const SegmentLogOptions log_options{.segment_size = options_.segment_size};
  auto log = co_await SegmentLog::Open(log_parts, log_options);
  if (!log.ok()) {
    // A device that takes no writes just now is one that cannot be used just now.
    const Code code = log.code() == Code::kNoSpace ? Code::kUnavailable : log.code();
    co_return Status(code, medium.label + ": " + log.status().message());
  }
  auto index = co_await IndexReplica::Open(*medium.metadata, parts_.workers, parts_.log);
  if (!index.ok()) {
    (void)co_await log.value()->Stop();
    co_return Status(index.code(), medium.label + ": " + index.status().message());
  }
  co_return std::make_unique<LocalTarget>(parts_.clock, std::move(medium), std::move(log).value(),
                                          std::move(index).value());
}

// What was deleted while a target was away, and is there again with it. Nothing of it is published.
Task<void> Node::ApplyRemovals() {
  Status outcome;
  std::vector<std::vector<StripeId>> removals(targets_.size());
  for (size_t i = 0; i < targets_.size(); ++i) {
    auto listed = co_await targets_[i]->index().ListRemovals();
    if (listed.ok()) {
      removals[i] = std::move(listed).value();
    } else {
      outcome = listed.status();
    }
    for (const StripeId& stripe : removals[i]) {
      Status removed = co_await RemoveStripe(home_->index(), stripe, MissReason::kAbsent);
      if (!removed.ok()) outcome = std::move(removed);
    }
  }
  for (size_t i = 0; i < targets_.size() && outcome.ok() && all_here(); ++i) {
    if (!removals[i].empty()) outcome = co_await targets_[i]->index().ForgetRemovals(removals[i]);
  }
  if (!outcome.ok()) parts_.log.Warning("deletions while a target was away: " + outcome.ToString());
}

// A stripe that was written, and whose publication a crash has swallowed, is published now if it
// can be restored; otherwise it is dropped.
Task<void> Node::Recover() {
  std::vector<StripeId> recovered;
  for (const auto& target : targets_) {
    const std::vector<StripeId> found = target->log().TakeRecovered();
    recovered.insert(recovered.end(), found.begin(), found.end());
  }
  std::sort(recovered.begin(), recovered.end());
  recovered.erase(std::unique(recovered.begin(), recovered.end()), recovered.end());
  const auto publish = [&](uint64_t i) { return RecoverStripe(recovered[i]); };
  (void)co_await RunInLanes(recovered.size(), kRecoveriesAtOnce, publish);  // Never fails.
  if (!recovered.empty()) {
    parts_.log.Info("recovered " + std::to_string(recovered.size()) + " stripes from segments");
  }
}

// Of as many records as it takes to find a whole manifest that names all the shards that are there:
// where shards have moved, only those that moved carry the newest. Without any the stripe is
// garbage, which reclaim finds.
Task<Status> Node::RecoverStripe(StripeId stripe) {
  if (home_->index().StateOf(stripe)) co_return Status();
  uint32_t held = 0;
  for (const auto& target : targets_) held += target->log().Find(stripe) ? 1 : 0;
  std::optional<Manifest> best;
  for (const auto& target : targets_) {
    if (best && around_.targets().ShardsAtHand(*best) == held) break;
    if (!target->log().Find(stripe)) continue;
    auto manifest = co_await target->log().ReadManifest(stripe);
    if (!manifest.ok()) continue;
    if (!best || best->generation < manifest.value().generation) {
      best = std::move(manifest).value();
    }
  }
  if (best) co_await PublishRecovered(*best);
  co_return Status();
}

Task<void> Node::PublishRecovered(const Manifest& manifest) {
  StoreStats& stats = store_->stats();
  const bool expired = parts_.clock.UnixNow() >= manifest.retention.expires_at;
  const bool whole = around_.targets().ShardsAtHand(manifest) >= manifest.data_shards;
  if (whole && !expired) {
    IndexedStripe stripe{
        .manifest = manifest, .expires_at = manifest.retention.expires_at, .position = 0};
    const Status published =
        co_await store_->index().Publish(std::move(stripe), Durability::kProcess);
    if (published.ok()) ++stats.republished_stripes;
    co_return;
  }
  const StripeName name{manifest.space, manifest.run, manifest.stripe};
  (void)co_await store_->index().Remove(name, MissReason::kAbsent);
  ++stats.dropped_stripes;
}

Task<void> Node::Maintain() {
  const Instant opened = parts_.clock.Now();
  Instant checkpoint_at = opened;  // What was found may be no older than the process before.
  Instant repair_at = opened;
  Instant lacking_at = opened;
  Instant reap_at = opened + options_.orphan_age;
  while (!stopping_.is_set()) {
    const Instant wake_at = parts_.clock.Now() + options_.maintenance_interval;
    co_await parts_.clock.SleepUntil(wake_at, &stopping_);
    if (stopping_.is_set()) break;
    co_await reclaimer_->RunIfLow();
    co_await RestoreDamaged();
    if (parts_.clock.Now() >= lacking_at) {
      co_await RestoreLacking();
      lacking_at = parts_.clock.Now() + Seconds(1);
    }
    co_await reclaimer_->PurgeExpired();
    window_->Purge();
    co_await store_->KeepHouse();
    const Instant now = parts_.clock.Now();
    if (now >= checkpoint_at) {
      co_await Checkpoint();
      checkpoint_at = now + options_.checkpoint_interval;
    }
    if (now >= repair_at) {
      co_await RepairIndexIfNeeded();
      repair_at = now + Seconds(5);
    }
    RepairIfDue();
    if (now >= reap_at) {
      co_await reclaimer_->ReapOrphans();
      // What other nodes write may become garbage at any time, and is seen to be so in two passes.
      const Nanos age = options_.reclaim.unpublished_age;
      reap_at = age.value == 0 ? kNever : now + age;
    }
  }
}

Task<void> Node::RestoreDamaged() {
  for (const StripeId& stripe : reclaimer_->TakeDamaged()) {
    auto filed = co_await home_->index().FindFiled(stripe);
    if (!filed.ok()) continue;
    const RestoreReport report = co_await restorer_->Restore(std::move(filed).value());
    if (report.failed > 0) {
      parts_.log.Warning("a damaged shard is not restored yet: " + report.status.ToString());
    }
  }
}

// Those written while a target was away: it is back, or the shard goes to another once it is lost.
Task<void> Node::RestoreLacking() {
  constexpr size_t kAtOnce = 64;
  HomeIndex& index = home_->index();
  const Instant until = parts_.clock.Now() + Seconds(1);  // Other upkeep waits for this.
  for (const StripeId& stripe : index.lacking().Next(kAtOnce)) {
    if (stopping_.is_set() || parts_.clock.Now() >= until) co_return;
    if (!index.IsHome(stripe)) {  // Not any more: whoever is hears of it.
      index.lacking().Forget(stripe);
      store_->index().NoteLacking(stripe);
      continue;
    }
    auto filed = co_await index.FindFiled(stripe);
    if (filed.code() == Code::kNotFound) index.lacking().Forget(stripe);
    if (!filed.ok()) continue;
    const RestoreReport report = co_await restorer_->Restore(std::move(filed).value());
    if (report.failed == 0 && report.unknown == 0) index.lacking().Forget(stripe);
  }
}

Task<void> Node::Checkpoint() {
  for (const auto& target : targets_) {
    const Status outcome = co_await target->Checkpoint();
    if (!outcome.ok()) {
      parts_.log.Warning(target->label() + ": checkpoint fails: " + outcome.ToString());
    }
  }
}

Task<void> Node::RepairIndexIfNeeded() {
  HomeIndex& index = home_->index();
  if (index.settled()) co_return;
  const uint64_t unsettlings = index.unsettlings();
  uint64_t filed = 0;
  const std::vector<StripeId> hidden = index.Hidden();
  const Status outcome = co_await around_.RepairIndex(filed);
  // A target that was left out may be the one that knows more.
  if (outcome.ok() && all_here()) {
    index.Show(hidden);
    index.Settle(unsettlings);
  }
  if (filed > 0) {
    parts_.log.Info("index: filed " + std::to_string(filed) + " records where they were missing");
  }
}

void Node::RepairIfDue() {
  const Instant now = parts_.clock.Now();
  if (!options_.repair.automatic || !around_.sole() || now < repair_due_) return;
  // A target that was left out may come back: its shards are not lost yet.
  repair_due_ = now + options_.repair.interval;
  if (all_here()) (void)repairer_->Start(options_.repair.bytes_per_second);
}

StoreStats Node::stats() const {
  StoreStats stats = store_->FullStats();
  stats.memory_bytes += window_->memory_bytes();
  for (const auto& target : targets_) {
    const SegmentLogStats log = target->log().stats();
    stats.bytes_appended += log.bytes_appended;
    stats.bytes_moved += log.bytes_moved;
    stats.capacity_bytes += log.capacity_bytes;
    stats.free_bytes += log.free_bytes;
    stats.live_bytes += log.live_bytes;
    stats.memory_bytes += target->memory_bytes();
  }
  return stats;
}

Task<void> Node::EndBackground() {
  co_await around_.Leave();
  reclaimer_->Stop();
  stopping_.Set();
  co_await background_.Close();
  co_await scrubber_->Close();
  co_await repairer_->Close();
  co_await store_->Stop();
  co_await around_.Close();
}

Task<Status> Node::Stop() {
  co_await EndBackground();
  Status outcome;
  for (const auto& target : targets_) {
    Status written = co_await target->Checkpoint();
    if (!written.ok()) outcome = std::move(written);
    Status stopped = co_await target->log().Stop();
    if (!stopped.ok()) outcome = std::move(stopped);
  }
  co_return outcome;
}

Task<void> Node::Abandon() {
  co_await EndBackground();
  for (const auto& target : targets_) (void)co_await target->log().Stop();
}

}  // namespace cairn::kv
