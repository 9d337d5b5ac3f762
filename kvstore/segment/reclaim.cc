// Gives space back: drops, moves and frees. Which ones is decided above.
#include <algorithm>
#include <utility>

#include "kvstore/base/checksum.h"
#include "kvstore/segment/disk_segment_log.h"

namespace cairn::kv {

Task<Status> DiskSegmentLog::Drop(StripeId stripe) {
  if (const auto place = table_.Find(stripe)) Forget(stripe, *place);
  co_return Status();
}

std::vector<SegmentInfo> DiskSegmentLog::segments() const {
  std::vector<SegmentInfo> infos;
  for (uint32_t i = 0; i < segments_.size(); ++i) {
    const Segment& segment = segments_[i];
    // One that is still being written, or freed, is nothing to reclaim.
    const bool busy = !segment.writing.empty() || segment.freeing;
    infos.push_back({.id = {i},
                     .state = busy ? SegmentInfo::State::kOpen : segment.state,
                     .epoch = segment.epoch,
                     .used_bytes = segment.used,
                     .live_bytes = segment.live,
                     .expires_at = segment.expires_at});
  }
  return infos;
}

std::vector<StripeId> DiskSegmentLog::StripesIn(SegmentId segment) const {
  std::vector<std::pair<uint32_t, StripeId>> found;
  table_.ForEach([&](StripeId stripe, const ShardPlace& place) {
    if (place.segment == segment) found.emplace_back(place.sector, stripe);
  });
  std::sort(found.begin(), found.end());
  std::vector<StripeId> stripes;
  for (const auto& [sector, stripe] : found) stripes.push_back(stripe);
  return stripes;
}

std::optional<StripeId> DiskSegmentLog::VisitShards(
    std::optional<StripeId> after, size_t count,
    const std::function<void(const HeldShard&)>& visit) const {
  std::optional<StripeId> last;
  table_.ForEachAfter(after, [&](StripeId stripe, const ShardPlace& place) {
    visit({.stripe = stripe, .segment = place.segment, .record_bytes = place.record_bytes()});
    last = stripe;
    return --count > 0;
  });
  return count > 0 ? std::nullopt : last;
}

Task<Status> DiskSegmentLog::Move(StripeId stripe) {
  const std::optional<ShardPlace> found = table_.Find(stripe);
  if (!found) co_return Status(Code::kNotFound);
  const ShardPlace old = *found;
  Bytes payload(old.payload_size);
  auto manifest = co_await ReadRecord(old, stripe, payload.span());
  if (!manifest.ok()) co_return manifest.status();
  const ShardPayload copy{payload.span(), Checksum(payload.span())};
  auto moved = co_await AppendRecord(manifest.value(), old.index, copy, Purpose::kMove);
  if (!moved.ok()) co_return moved.status();
  const std::optional<ShardPlace> now = table_.Find(stripe);
  if (now == old) {
    Insert(stripe, moved.value());
    co_return Status();
  }
  // Dropped, or moved by another, meanwhile: this copy is garbage, and stays so after a crash.
  const bool moved_by_another = now.has_value();
  NoteChange({.stripe = stripe, .place = std::nullopt, .record = NameOf(moved.value())});
  co_return moved_by_another ? Status() : Status(Code::kNotFound);
}

Task<Status> DiskSegmentLog::Free(SegmentId id) {
  if (id.value >= segments_.size()) co_return Status(Code::kInvalid, "no such segment");
  Segment& segment = segments_[id.value];
  if (segment.state != SegmentInfo::State::kSealed || segment.live > 0 ||
      !segment.writing.empty() || segment.freeing) {
    co_return Status(Code::kInvalid, "the segment is not sealed and empty");
  }
  segment.freeing = true;
  if (segment.readers > 0) {
    segment.unread = std::make_unique<Event>(parts_.loop);
    Event& unread = *segment.unread;
    co_await unread;
    segment.unread.reset();
  }
  // A power cut must not find the segment overwritten and the moved copies not yet written.
  Status synced;
  if (segment.moved_out) synced = co_await Sync();
  segment.freeing = false;
  if (!synced.ok()) co_return synced;
  segment.state = SegmentInfo::State::kFree;
  segment.used = 0;
  segment.uncommitted.clear();
  dirty_.insert(id.value);
  // If this fails, the epoch in the segment's next header says the same to a recovery.
  const Status committed = co_await Commit();
  if (!committed.ok()) parts_.log.Warning("freeing a segment: " + committed.ToString());
  co_return Status();
}

uint32_t DiskSegmentLog::free_segments() const {
  return static_cast<uint32_t>(
      std::count_if(segments_.begin(), segments_.end(), [](const Segment& segment) {
        return segment.state == SegmentInfo::State::kFree;
      }));
}

}  // namespace cairn::kv
