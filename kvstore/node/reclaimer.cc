// Carries out what the planner decides, target by target.
#include "kvstore/node/reclaimer.h"

#include <algorithm>
#include <utility>

namespace cairn::kv {
namespace {

constexpr size_t kRemovalsAtOnce = 16;
constexpr size_t kPurgeMax = 256;
constexpr size_t kPurgeRounds = 16;
constexpr size_t kDamagedMax = 1024;  // The passes of repair find the rest.
constexpr size_t kPurgeVisits = 1 << 16;
// Steps between two pauses: entries of the shard table, and stripes looked up in the index.
constexpr size_t kShardsPerStep = 8192;
constexpr size_t kStatesPerStep = 512;
constexpr Nanos kPauseTime = Micros(20);
// In a target with more sealed segments than this the planner sees a sample of them.
constexpr size_t kCandidatesMax = 256;
constexpr size_t kViewsMax = 1 << 16;

uint64_t FreeSegments(const LocalTarget& target) {
  const std::vector<SegmentInfo> segments = target.log().segments();
  return static_cast<uint64_t>(std::count_if(
      segments.begin(), segments.end(),
      [](const SegmentInfo& segment) { return segment.state == SegmentInfo::State::kFree; }));
}

}  // namespace

Reclaimer::Reclaimer(Parts parts, ReclaimerOptions options) : parts_(parts), options_(options) {}

void Reclaimer::Use(StripeIndex& index, const StripeWriter& writer, StoreStats& stats) {
  index_ = &index;
  writer_ = &writer;
  stats_ = &stats;
}

Task<Status> Reclaimer::MakeRoom(uint64_t /*bytes*/) {
  if (stopping_) co_return Status(Code::kUnavailable, "the store is stopping");
  if (running_ != nullptr) {
    const std::shared_ptr<Event> running = running_;
    Event& done = *running;
    co_await done;
    co_return Status();
  }
  if (co_await ReclaimAll()) co_return Status();
  co_return Status(Code::kNoSpace, "the store is full, and nothing in it can be evicted");
}

Task<void> Reclaimer::RunIfLow() {
  if (stopping_ || running_ != nullptr) co_return;
  bool low = false;
  for (const auto& target : parts_.targets) low = low || FreeWanted(*target) > 0;
  if (low) (void)co_await ReclaimAll();
}

uint64_t Reclaimer::FreeWanted(const LocalTarget& target) const {
  return SegmentsWanted(target.log().segments().size(), FreeSegments(target),
                        options_.free_segments_min_percent);
}

// True when some segment was freed, also when puts have taken it again since, or none is lacking.
Task<bool> Reclaimer::ReclaimAll() {
  running_ = std::make_shared<Event>(parts_.loop);
  const std::shared_ptr<Event> running = running_;
  views_.clear();
  ++rounds_;
  std::optional<uint64_t> budget;  // The same for all, where they share stripes.
  bool progress = false;
  bool lacking = false;
  for (const auto& target : parts_.targets) {
    const uint64_t wanted = FreeWanted(*target);
    if (wanted == 0 || stopping_) continue;
    if (!TargetsShareStripes()) budget = MoveBudgetOf({&target, 1});
    if (!budget) budget = MoveBudgetOf(parts_.targets);
    const bool freed = co_await ReclaimTarget(*target, wanted, *budget);
    progress = progress || freed;
    lacking = lacking || FreeSegments(*target) == 0;
  }
  running_ = nullptr;
  running->Set();
  co_return progress || !lacking;
}

Task<bool> Reclaimer::ReclaimTarget(LocalTarget& target, uint64_t segments_wanted,
                                    uint64_t move_bytes_max) {
  std::vector<Candidate> candidates = Candidates(target);
  if (candidates.empty()) co_return false;
  co_await CollectShards(target, candidates);
  std::vector<SegmentView> views;
  for (Candidate& candidate : candidates) views.push_back(std::move(candidate.view));
  const ReclaimNeed need{
      .segments_wanted = segments_wanted,
      .move_bytes_max = move_bytes_max,
      .now_seconds = static_cast<uint32_t>(parts_.clock.UnixNow().value / 1000)};
  ReclaimPlanner& planner = planners_[TargetsShareStripes() ? TargetId{} : target.id()];
  std::vector<SegmentReclaim> plan = planner.Plan(views, need);
  bool any_freed = false;
  for (SegmentReclaim& reclaim : plan) {
    if (stopping_) break;
    const Candidate& candidate = candidates[reclaim.segment];
    const bool freed = co_await Execute(target, candidate, std::move(reclaim));
    any_freed = any_freed || freed;
  }
  co_return any_freed;
}

uint64_t Reclaimer::MoveBudgetOf(std::span<const std::unique_ptr<LocalTarget>> sharers) const {
  uint64_t put = 0;
  uint64_t moved = 0;
  uint64_t segment_of_each = 0;
  for (const auto& target : sharers) {
    const SegmentLogStats stats = target->log().stats();
    put += stats.bytes_appended - stats.bytes_moved;
    moved += stats.bytes_moved;
    segment_of_each += stats.capacity_bytes / target->log().segments().size();
  }
  return MoveBudget(put, moved, segment_of_each, options_.move_percent_max) / sharers.size();
}

// All sealed segments; or, where these are many, the ones that look empty and a sample of the rest
// that is another one in each round.
std::vector<Reclaimer::Candidate> Reclaimer::Candidates(const LocalTarget& target) {
  std::vector<Candidate> sealed;
  for (const SegmentInfo& segment : target.log().segments()) {
    if (segment.state == SegmentInfo::State::kSealed) sealed.push_back({.segment = segment});
  }
  if (sealed.size() <= kCandidatesMax) return sealed;
  std::vector<Candidate> chosen;
  const UnixMillis now = parts_.clock.UnixNow();
  for (const Candidate& candidate : sealed) {
    const SegmentInfo& segment = candidate.segment;
    const bool empty = segment.live_bytes == 0 || now >= segment.expires_at;
    if (empty && chosen.size() < kCandidatesMax / 2) chosen.push_back(candidate);
  }
  const size_t stride = sealed.size() / (kCandidatesMax / 2);
  for (size_t i = rounds_ % stride; i < sealed.size(); i += stride) {
    const auto same = [&](const Candidate& other) {
      return other.segment.id == sealed[i].segment.id;
    };
    if (std::none_of(chosen.begin(), chosen.end(), same)) chosen.push_back(sealed[i]);
  }
  return chosen;
}

Task<void> Reclaimer::CollectShards(const LocalTarget& target,
                                    std::vector<Candidate>& candidates) {
  std::vector<Candidate*> by_segment(target.log().segments().size(), nullptr);
  for (Candidate& candidate : candidates) {
    candidate.view.used_bytes = candidate.segment.used_bytes;
    by_segment[candidate.segment.id.value] = &candidate;
  }
  const std::function<void(const SegmentLog::HeldShard&)> visit =
      [&](const SegmentLog::HeldShard& shard) {
        Candidate* candidate = by_segment[shard.segment.value];
        if (candidate == nullptr) return;
        candidate->stripes.push_back(shard.stripe);
        candidate->view.shards.push_back({.bytes = shard.record_bytes});
      };
  std::optional<StripeId> after;
  while (!stopping_) {
    after = target.log().VisitShards(after, kShardsPerStep, visit);
    if (!after) break;
    co_await Pause();
  }
  size_t looked_up = 0;
  for (Candidate& candidate : candidates) {
    const size_t count = candidate.stripes.size();
    for (size_t begin = 0; begin < count;) {
      const size_t end = std::min(count, begin + kStatesPerStep - looked_up % kStatesPerStep);
      co_await LookUpStates(candidate, begin, end);
      looked_up += end - begin;
      begin = end;
      if (looked_up % kStatesPerStep == 0) co_await Pause();
    }
  }
}

Task<void> Reclaimer::LookUpStates(Candidate& candidate, size_t begin, size_t end) {
  std::vector<StripeId> unknown;
  for (size_t i = begin; i < end; ++i) {
    if (!views_.contains(candidate.stripes[i])) unknown.push_back(candidate.stripes[i]);
  }
  const std::vector<StripeReport> reports = co_await index_->StatesOf(unknown);
  if (views_.size() + unknown.size() > kViewsMax) views_.clear();
  for (size_t i = 0; i < unknown.size(); ++i) {
    views_.insert_or_assign(unknown[i], ViewOf(unknown[i], reports[i]));
  }
  for (size_t i = begin; i < end; ++i) {
    const auto known = views_.find(candidate.stripes[i]);
    ShardView& shard = candidate.view.shards[i];
    const uint64_t bytes = shard.bytes;
    shard = known == views_.end() ? ShardView{.fate = ShardView::Fate::kPinned} : known->second;
    shard.bytes = bytes;
  }
}

ShardView Reclaimer::ViewOf(StripeId stripe, const StripeReport& report) {
  ShardView view{.fate = ShardView::Fate::kPinned};
  if (writer_->IsInFlight(stripe) || report.kind == StripeReport::Kind::kUnknown) return view;
  if (report.kind == StripeReport::Kind::kAbsent) {
    if (IsGarbage(stripe, report)) view.fate = ShardView::Fate::kDead;
    return view;
  }
  const bool expired = parts_.clock.UnixNow() >= report.state.expires_at;
  view.fate = expired ? ShardView::Fate::kExpired : ShardView::Fate::kLive;
  if (!expired && report.held) view.fate = ShardView::Fate::kHeld;
  view.hit = report.state.hit;
  view.last_access = report.state.last_access;
  view.position = report.state.position;
  return view;
}

bool Reclaimer::IsGarbage(StripeId stripe, const StripeReport& report) {
  if (report.kind != StripeReport::Kind::kAbsent || writer_->IsInFlight(stripe)) {
    absent_since_.erase(stripe);
    return false;
  }
  if (options_.unpublished_age.value == 0) return true;
  if (absent_since_.size() >= kViewsMax) absent_since_.clear();
  const Instant now = parts_.clock.Now();
  return now - absent_since_.emplace(stripe, now).first->second >= options_.unpublished_age;
}

Task<bool> Reclaimer::IsHeld(StripeId stripe) {
  const std::vector<StripeId> asked{stripe};
  const std::vector<StripeReport> reports = co_await index_->StatesOf(asked);
  co_return ViewOf(stripe, reports[0]).fate == ShardView::Fate::kHeld;
}

Task<bool> Reclaimer::Execute(LocalTarget& target, const Candidate& candidate,
                              SegmentReclaim reclaim) {
  const auto ids = [&](const std::vector<uint32_t>& shards) {
    std::vector<StripeId> stripes;
    for (const uint32_t i : shards) stripes.push_back(candidate.stripes[i]);
    return stripes;
  };
  // What came to be held since the plan was made.
  const std::vector<StripeId> doomed = ids(reclaim.evict);
  const std::vector<StripeReport> reports = co_await index_->StatesOf(doomed);
  std::vector<uint32_t> evict;
  for (size_t i = 0; i < doomed.size(); ++i) {
    const bool held = ViewOf(doomed[i], reports[i]).fate == ShardView::Fate::kHeld;
    (held ? reclaim.move : evict).push_back(reclaim.evict[i]);
  }
  reclaim.evict = std::move(evict);
  if (!co_await MoveAll(target, candidate, reclaim)) co_return false;
  co_await RemoveAll(ids(reclaim.expired), MissReason::kExpired);
  co_await RemoveAll(ids(reclaim.evict), MissReason::kEvicted);
  for (const uint32_t i : reclaim.dead) {
    // It may be put and published only by a writer that draws the same random id: it is garbage.
    const Status dropped = co_await target.Drop(candidate.stripes[i]);
    if (!dropped.ok()) parts_.log.Debug("garbage is not dropped: " + dropped.ToString());
  }
  const Status freed = co_await target.log().Free(candidate.segment.id);
  if (!freed.ok()) parts_.log.Debug(target.label() + ": not freed: " + freed.ToString());
  co_return freed.ok();
}

// False when something held could not be moved: then the segment stays.
Task<bool> Reclaimer::MoveAll(LocalTarget& target, const Candidate& candidate,
                              SegmentReclaim& reclaim) {
  for (const uint32_t i : reclaim.move) {
    const StripeId stripe = candidate.stripes[i];
    const Status moved = co_await target.log().Move(stripe);
    // Gone meanwhile is fine; without room for it, it goes.
    if (moved.ok() || moved.code() == Code::kNotFound) continue;
    if (moved.code() != Code::kNoSpace && co_await DropDamaged(target, stripe)) continue;
    if (co_await IsHeld(stripe)) co_return false;
    reclaim.evict.push_back(i);
  }
  co_return true;
}

// A shard that cannot be read is as good as lost: where others restore the stripe, it goes alone.
Task<bool> Reclaimer::DropDamaged(LocalTarget& target, StripeId stripe) {
  const auto name = co_await index_->NameOf(stripe);
  if (!name.ok()) co_return false;
  const RunKey key{name.value().space, name.value().run};
  const auto run = co_await index_->LoadAll(key);
  if (!run.ok()) co_return false;
  const std::vector<KnownStripePtr>& stripes = run.value()->stripes();
  const auto spared = [&](const KnownStripePtr& known) {
    const Manifest& manifest = known->manifest;
    return manifest.stripe == stripe &&
           ShardsAtHand(parts_.targets, manifest) > manifest.data_shards;
  };
  if (std::none_of(stripes.begin(), stripes.end(), spared)) co_return false;
  const Status dropped = co_await target.Drop(stripe);
  if (dropped.ok() && damaged_.size() < kDamagedMax) damaged_.push_back(stripe);
  co_return dropped.ok();
}

Task<void> Reclaimer::Pause() {
  const Instant wake_at = parts_.clock.Now() + kPauseTime;
  co_await parts_.clock.SleepUntil(wake_at, nullptr);
}

Task<void> Reclaimer::RemoveAll(std::vector<StripeId> stripes, MissReason reason) {
  for (size_t begin = 0; begin < stripes.size(); begin += kRemovalsAtOnce) {
    std::vector<Task<Status>> removals;
    for (size_t i = begin; i < std::min(stripes.size(), begin + kRemovalsAtOnce); ++i) {
      views_.erase(stripes[i]);
      removals.push_back(RemoveStripe(*index_, stripes[i], reason));
    }
    // What is held stays: its segment is not freed this time. What a target kept is found out by
    // its shards, and reclaimed again.
    for (Task<Status>& removal : removals) (void)co_await removal;
  }
}

Task<void> Reclaimer::PurgeExpired() {
  for (size_t round = 0; round < kPurgeRounds && !stopping_; ++round) {
    if (!co_await PurgeOneTarget()) co_return;
  }
}

Task<bool> Reclaimer::PurgeOneTarget() {
  purge_next_ = (purge_next_ + 1) % parts_.targets.size();
  const UnixMillis now = parts_.clock.UnixNow();
  std::vector<StripeId> over;
  purge_after_.resize(parts_.targets.size());
  std::optional<StripeId>& after = purge_after_[purge_next_];
  std::optional<StripeId> reached;
  size_t visited = 0;
  const auto look = [&](StripeId stripe, const StripeState& state) {
    if (over.size() >= kPurgeMax || ++visited > kPurgeVisits) {
      return false;  // The next call for this target goes on behind `reached`.
    }
    reached = stripe;
    if (now >= state.expires_at) over.push_back(stripe);
    return true;
  };
  parts_.targets[purge_next_]->index().states().ForEachAfter(after, look);
  const bool many = over.size() >= kPurgeMax;
  after = many || visited > kPurgeVisits ? reached : std::nullopt;
  // Another replica may know of later hits.
  const std::vector<StripeReport> reports = co_await index_->StatesOf(over);
  std::vector<StripeId> expired;
  for (size_t i = 0; i < over.size(); ++i) {
    const bool filed = reports[i].kind == StripeReport::Kind::kFiled;
    if (filed && now >= reports[i].state.expires_at) expired.push_back(over[i]);
  }
  co_await RemoveAll(std::move(expired), MissReason::kExpired);
  co_return many;
}

Task<void> Reclaimer::ReapOrphans() {
  for (const auto& target : parts_.targets) {
    std::optional<StripeId> after;
    do {
      std::vector<StripeId> held;
      const auto visit = [&](const SegmentLog::HeldShard& shard) { held.push_back(shard.stripe); };
      after = target->log().VisitShards(after, kShardsPerStep, visit);
      const std::vector<StripeId> garbage = co_await GarbageOf(std::move(held));
      for (const StripeId& stripe : garbage) {
        if (stopping_) co_return;
        const Status dropped = co_await target->Drop(stripe);
        if (dropped.ok()) ++stats_->dropped_stripes;
      }
      co_await Pause();
    } while (after && !stopping_);
  }
}

Task<std::vector<StripeId>> Reclaimer::GarbageOf(std::vector<StripeId> held) {
  const std::vector<StripeReport> reports = co_await index_->StatesOf(held);
  std::vector<StripeId> garbage;
  for (size_t i = 0; i < held.size(); ++i) {
    if (IsGarbage(held[i], reports[i])) garbage.push_back(held[i]);
  }
  co_return std::move(garbage);
}

}  // namespace cairn::kv
