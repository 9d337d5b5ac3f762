// Appends: chooses the segment by expiry, reserves a range, writes header and payload side by side.
#include <algorithm>
#include <utility>

#include "kvstore/segment/disk_segment_log.h"

namespace cairn::kv {
namespace {

// What puts may not take: Move needs room to work in, or nothing could ever be reclaimed.
constexpr uint32_t kSegmentsForMoves = 1;
// So many changes may wait while the metadata takes no writes: 3 MiB.
constexpr size_t kPendingMax = 32768;

// The target's space was taken when it was formatted, so a device that says it is full is at fault:
// freeing segments would not help, other targets do.
Status DeviceFault(Status status) {
  if (status.code() != Code::kNoSpace) return status;
  return Status(Code::kUnavailable, "the device refuses writes: " + status.ToString());
}

uint64_t NextEpoch(uint64_t epoch, Random& random) {
  return ((epoch >> 32) + 1) << 32 | (random.Next() & 0xffffffffu);
}

}  // namespace

Task<Status> DiskSegmentLog::Append(const Manifest& manifest, ShardIndex index,
                                    ShardPayload payload) {
  KV_CHECK(index.value < manifest.shard_count());
  KV_CHECK(payload.bytes.size() == manifest.shard_size);
  if (const auto place = table_.Find(manifest.stripe)) {
    if (place->index == index) co_return Status();
    co_return Status(Code::kInvalid, "this target holds another shard of the stripe");
  }
  const StripeId stripe = manifest.stripe;
  auto place = co_await AppendRecord(manifest, index, payload, Purpose::kPut);
  if (!place.ok()) co_return place.status();
  Insert(stripe, place.value());
  co_return Status();
}

Task<Result<ShardPlace>> DiskSegmentLog::AppendRecord(const Manifest& manifest, ShardIndex index,
                                                      ShardPayload payload, Purpose purpose) {
  if (pending_.size() >= kPendingMax) {
    co_return Status(Code::kUnavailable, "the target's metadata takes no writes");
  }
  const Bytes encoded = EncodeManifest(manifest);
  RecordHeader header{.index = index,
                      .epoch = 0,
                      .stripe = manifest.stripe,
                      .payload_size = static_cast<uint32_t>(payload.bytes.size()),
                      .manifest_size = static_cast<uint32_t>(encoded.size()),
                      .payload_checksum = payload.checksum};
  const uint64_t bytes = header.record_bytes();
  const UnixMillis expires_at = manifest.retention.expires_at;
  if (bytes > superblock_.segment_size - kSectorSize || payload.bytes.empty() ||
      payload.bytes.size() > kStripePayloadMax) {
    co_return Status(Code::kInvalid, "a shard of " + std::to_string(payload.bytes.size()) +
                                         " bytes does not fit into a segment");
  }
  const auto permit = co_await append_window_.Acquire(std::min(bytes, kAppendWindow));
  auto reserved = co_await Reserve(bytes, SlotOf(expires_at, purpose), purpose);
  if (!reserved.ok()) co_return reserved.status();
  const Reservation at = reserved.value();
  Segment& segment = segments_[at.segment];
  segment.expires_at = std::max(segment.expires_at, expires_at);
  header.epoch = segment.epoch;
  const Bytes sectors = EncodeRecordHeader(header, encoded.span());
  const uint64_t offset = OffsetOf(at.segment) + at.offset;
  auto header_write = parts_.disk.Write(offset, sectors.sectors());
  auto payload_write = parts_.disk.Write(offset + sectors.size(), payload.bytes);
  const Status header_status = co_await header_write;
  const Status payload_status = co_await payload_write;
  segment.writing.erase(at.offset);
  if (!header_status.ok() || !payload_status.ok()) {
    // The hole that this leaves may be larger than a scan steps over, so nothing goes behind it.
    segment.uncommitted.erase(at.offset);
    if (open_[segment.slot] == at.segment) open_[segment.slot].reset();
    segment.state = SegmentInfo::State::kSealed;
    dirty_.insert(at.segment);
    co_return DeviceFault(header_status.ok() ? payload_status : header_status);
  }
  ++stats_.records_appended;
  stats_.bytes_appended += bytes;
  if (purpose == Purpose::kMove) stats_.bytes_moved += bytes;
  co_return ShardPlace{.segment = {at.segment},
                       .sector = static_cast<uint32_t>(at.offset / kSectorSize),
                       .payload_size = header.payload_size,
                       .header_sectors = static_cast<uint16_t>(sectors.size() / kSectorSize),
                       .index = index};
}

Task<Result<DiskSegmentLog::Reservation>> DiskSegmentLog::Reserve(uint64_t bytes, uint32_t slot,
                                                                  Purpose purpose) {
  if (open_[slot]) {
    if (auto reserved = TryReserve(*open_[slot], bytes)) co_return *reserved;
  }
  const auto permit = co_await opening_.Acquire(1);
  // Another append may have opened one meanwhile.
  if (open_[slot]) {
    if (auto reserved = TryReserve(*open_[slot], bytes)) co_return *reserved;
    segments_[*open_[slot]].state = SegmentInfo::State::kSealed;
    dirty_.insert(*open_[slot]);
    open_[slot].reset();
  }
  const uint32_t reserve = purpose == Purpose::kPut ? kSegmentsForMoves : 0;
  if (free_segments() <= reserve) {
    if (auto reserved = ReserveAnywhere(bytes)) co_return *reserved;
    co_return Status(Code::kNoSpace, "no free segment");
  }
  // The one that has been free the longest: lowest use count.
  uint32_t chosen = 0;
  for (uint32_t i = 0; i < segments_.size(); ++i) {
    if (segments_[i].state != SegmentInfo::State::kFree) continue;
    if (segments_[chosen].state != SegmentInfo::State::kFree ||
        segments_[i].epoch < segments_[chosen].epoch) {
      chosen = i;
    }
  }
  const Status opened = co_await OpenSegment(chosen, slot);
  if (!opened.ok()) co_return DeviceFault(opened);
  auto reserved = TryReserve(chosen, bytes);
  KV_CHECK(reserved.has_value());
  co_return *reserved;
}

std::optional<DiskSegmentLog::Reservation> DiskSegmentLog::TryReserve(uint32_t number,
                                                                      uint64_t bytes) {
  Segment& segment = segments_[number];
  if (bytes > superblock_.segment_size - segment.used) return std::nullopt;
  const Reservation reserved{number, segment.used};
  segment.used += bytes;
  segment.uncommitted.insert(reserved.offset);
  segment.writing.insert(reserved.offset);
  unsynced_.insert(number);
  return reserved;
}

// With no segment left to open, expiry order gives way to room.
std::optional<DiskSegmentLog::Reservation> DiskSegmentLog::ReserveAnywhere(uint64_t bytes) {
  for (const std::optional<uint32_t>& open : open_) {
    if (!open) continue;
    if (auto reserved = TryReserve(*open, bytes)) return reserved;
  }
  return std::nullopt;
}

// The header, with its new epoch, is durable before the first record of this use: otherwise a power
// cut could leave the old header over new records. The sync covers all segments, so that what a
// recovery must verify again stays within the open segments.
Task<Status> DiskSegmentLog::OpenSegment(uint32_t number, uint32_t slot) {
  Segment& segment = segments_[number];
  segment.epoch = NextEpoch(segment.epoch, parts_.random);
  const SegmentHeader header{superblock_.target, number, segment.epoch};
  const Bytes sector = EncodeSegmentHeader(header);
  KV_CO_RETURN_IF_ERROR(co_await parts_.disk.Write(OffsetOf(number), sector.sectors()));
  KV_CO_RETURN_IF_ERROR(co_await SyncDisk());
  segment.state = SegmentInfo::State::kOpen;
  segment.bucket = static_cast<uint8_t>(slot % kBuckets);
  segment.slot = static_cast<uint8_t>(slot);
  segment.used = kSectorSize;
  segment.live = 0;
  segment.durable = kSectorSize;
  segment.moved_out = false;
  segment.expires_at = {};
  segment.uncommitted.clear();
  open_[slot] = number;
  dirty_.insert(number);
  co_return Status();
}

uint32_t DiskSegmentLog::BucketOf(UnixMillis expires_at) const {
  const int64_t left = (expires_at.value - parts_.clock.UnixNow().value) / 1000;
  uint32_t bucket = 0;
  while (bucket < kBucketSeconds.size() && left > kBucketSeconds[bucket]) ++bucket;
  return bucket * buckets_used_ / kBuckets;
}

uint32_t DiskSegmentLog::SlotOf(UnixMillis expires_at, Purpose purpose) const {
  const bool apart = purpose == Purpose::kMove && segments_.size() >= kSegmentsForOwnMoves;
  return BucketOf(expires_at) + (apart ? kBuckets : 0);
}

void DiskSegmentLog::Insert(StripeId stripe, const ShardPlace& place) {
  const std::optional<ShardPlace> found = table_.Find(stripe);
  segments_[place.segment.value].live += place.record_bytes();
  if (!found) {
    table_.Set(stripe, place);
    NoteChange({.stripe = stripe, .place = place, .record = NameOf(place)});
    return;
  }
  const ShardPlace old = *found;
  Segment& source = segments_[old.segment.value];
  source.live -= old.record_bytes();
  source.moved_out = true;
  table_.Set(stripe, place);
  moved_.push_back(
      {.stripe = stripe, .place = place, .record = NameOf(place), .replaced = NameOf(old)});
}

// Takes `place` out of the table, where it must be.
void DiskSegmentLog::Forget(StripeId stripe, const ShardPlace& place) {
  segments_[place.segment.value].live -= place.record_bytes();
  table_.Erase(stripe);
  NoteChange({.stripe = stripe, .place = std::nullopt, .record = NameOf(place)});
}

}  // namespace cairn::kv
