// Carries out what reclaim_plan.h decides, target by target.
#include "kvstore/node/reclaimer.h"

#include <algorithm>
#include <utility>

namespace cairn::kv {
namespace {

constexpr size_t kRemovalsAtOnce = 16;
constexpr size_t kPurgeMax = 256;
constexpr size_t kPurgeVisits = 1 << 16;

uint64_t FreeSegments(const LocalTarget& target) {
  const std::vector<SegmentInfo> segments = target.log().segments();
  return static_cast<uint64_t>(std::count_if(
      segments.begin(), segments.end(),
      [](const SegmentInfo& segment) { return segment.state == SegmentInfo::State::kFree; }));
}

}  // namespace

Reclaimer::Reclaimer(Parts parts, ReclaimerOptions options) : parts_(parts), options_(options) {}

void Reclaimer::Use(IndexClient& index, const StripeWriter& writer, StoreStats& stats) {
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
  for (const auto& target : parts_.targets) low = low || SegmentsWanted(*target) > 0;
  if (low) (void)co_await ReclaimAll();
}

uint64_t Reclaimer::SegmentsWanted(const LocalTarget& target) const {
  const uint64_t segments = target.log().segments().size();
  const uint64_t low = std::max<uint64_t>(2, segments * options_.free_segments_min_percent / 100);
  const uint64_t free = FreeSegments(target);
  return free >= low ? 0 : low - free + 1;
}

// True when some target has more free segments than before, or none lacks any.
Task<bool> Reclaimer::ReclaimAll() {
  running_ = std::make_shared<Event>(parts_.loop);
  const std::shared_ptr<Event> running = running_;
  bool progress = false;
  bool lacking = false;
  for (const auto& target : parts_.targets) {
    const uint64_t wanted = SegmentsWanted(*target);
    if (wanted == 0 || stopping_) continue;
    const uint64_t before = FreeSegments(*target);
    co_await ReclaimTarget(*target, wanted);
    const uint64_t after = FreeSegments(*target);
    progress = progress || after > before;
    lacking = lacking || after == 0;
  }
  running_ = nullptr;
  running->Set();
  co_return progress || !lacking;
}

Task<void> Reclaimer::ReclaimTarget(LocalTarget& target, uint64_t segments_wanted) {
  const std::vector<SegmentView> views = ViewOf(target);
  if (views.empty()) co_return;
  uint64_t largest = 0;
  for (const SegmentView& view : views) largest = std::max(largest, view.used_bytes);
  const SegmentLogStats stats = target.log().stats();
  const uint64_t put = stats.bytes_appended - stats.bytes_moved;
  const uint64_t budget = put / 100 * options_.move_percent_max;
  const ReclaimLimits limits{
      .bytes_wanted = segments_wanted * largest,
      .move_bytes_max = budget > stats.bytes_moved ? budget - stats.bytes_moved : 0};
  std::vector<SegmentReclaim> plan = PlanReclaim(views, limits);
  for (SegmentReclaim& reclaim : plan) {
    if (stopping_) co_return;
    co_await Execute(target, std::move(reclaim));
  }
}

std::vector<SegmentView> Reclaimer::ViewOf(LocalTarget& target) const {
  std::vector<SegmentView> views;
  for (const SegmentInfo& segment : target.log().segments()) {
    if (segment.state != SegmentInfo::State::kSealed) continue;
    SegmentView view{.id = segment.id,
                     .used_bytes = segment.used_bytes,
                     .live_bytes = segment.live_bytes,
                     .shards = {}};
    for (const StripeId& stripe : target.log().StripesIn(segment.id)) {
      view.shards.push_back(ViewOf(stripe));
    }
    views.push_back(std::move(view));
  }
  return views;
}

ShardView Reclaimer::ViewOf(StripeId stripe) const {
  ShardView view{.stripe = stripe, .fate = ShardView::Fate::kDead};
  const std::optional<StripeState> state = FindState(parts_.targets, stripe);
  if (writer_->IsInFlight(stripe)) {
    view.fate = ShardView::Fate::kPinned;
  } else if (state) {
    const bool expired = parts_.clock.UnixNow() >= state->expires_at;
    view.fate = expired ? ShardView::Fate::kExpired : ShardView::Fate::kLive;
    if (!expired && index_->IsHeld(stripe)) view.fate = ShardView::Fate::kHeld;
    view.last_access = state->last_access;
    view.position = state->position;
  }
  return view;
}

Task<void> Reclaimer::Execute(LocalTarget& target, SegmentReclaim reclaim) {
  for (const StripeId& stripe : reclaim.move) {
    const Status moved = co_await target.log().Move(stripe);
    // Gone meanwhile is fine; without room for it, it goes.
    if (!moved.ok() && moved.code() != Code::kNotFound) reclaim.evict.push_back(stripe);
  }
  co_await RemoveAll(std::move(reclaim.expired), MissReason::kExpired);
  co_await RemoveAll(std::move(reclaim.evict), MissReason::kEvicted);
  for (const StripeId& stripe : reclaim.dead) {
    // It may be put and published only by a writer that draws the same random id: it is garbage.
    const Status dropped = co_await target.Drop(stripe);
    if (!dropped.ok()) parts_.log.Debug("garbage is not dropped: " + dropped.ToString());
  }
  const Status freed = co_await target.log().Free(reclaim.segment);
  if (!freed.ok()) parts_.log.Debug(target.label() + ": not freed: " + freed.ToString());
}

Task<Status> Reclaimer::RemoveOne(StripeId stripe, MissReason reason) {
  auto name = co_await FindName(parts_.targets, stripe);
  if (name.ok()) co_return co_await index_->Remove(name.value(), reason);
  if (name.code() == Code::kNotFound) {
    // In no index: only its shards are left.
    const StripeName shards_only{.space = {}, .run = {}, .stripe = stripe};
    co_return co_await index_->Remove(shards_only, MissReason::kAbsent);
  }
  parts_.log.Debug("a stripe cannot be removed now: " + name.status().ToString());
  co_return name.status();
}

Task<void> Reclaimer::RemoveAll(std::vector<StripeId> stripes, MissReason reason) {
  for (size_t begin = 0; begin < stripes.size(); begin += kRemovalsAtOnce) {
    std::vector<Task<Status>> removals;
    for (size_t i = begin; i < std::min(stripes.size(), begin + kRemovalsAtOnce); ++i) {
      removals.push_back(RemoveOne(stripes[i], reason));
    }
    // What is held stays: its segment is not freed this time. What a target kept is found out by
    // its shards, and reclaimed again.
    for (Task<Status>& removal : removals) (void)co_await removal;
  }
}

Task<void> Reclaimer::PurgeExpired() {
  if (parts_.targets.empty() || stopping_) co_return;
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
    if (now < state.expires_at) return true;
    const std::optional<StripeState> newest = FindState(parts_.targets, stripe);
    if (newest && now >= newest->expires_at) over.push_back(stripe);
    return true;
  };
  parts_.targets[purge_next_]->index().states().ForEachAfter(after, look);
  const bool stopped = over.size() >= kPurgeMax || visited > kPurgeVisits;
  after = stopped ? reached : std::nullopt;
  co_await RemoveAll(std::move(over), MissReason::kExpired);
}

Task<void> Reclaimer::ReapOrphans() {
  for (const auto& target : parts_.targets) {
    for (const StripeId& stripe : StripesOn(*target)) {
      if (stopping_) co_return;
      if (writer_->IsInFlight(stripe) || FindState(parts_.targets, stripe)) continue;
      const Status dropped = co_await target->Drop(stripe);
      if (dropped.ok()) ++stats_->dropped_stripes;
    }
  }
}

}  // namespace cairn::kv
