// Reads of ranges and of whole records, and what is known from memory.
#include <algorithm>
#include <utility>

#include "kvstore/base/checksum.h"
#include "kvstore/segment/disk_segment_log.h"
#include "kvstore/segment/read_pin.h"

namespace cairn::kv {

Task<Status> DiskSegmentLog::Read(Range range) {
  const std::optional<ShardPlace> found = table_.Find(range.stripe);
  if (!found || found->index != range.index) co_return Status(Code::kNotFound);
  const ShardPlace place = *found;
  if (range.offset % kSectorSize != 0 || range.into.size() % kSectorSize != 0 ||
      range.offset > place.payload_size || range.into.size() > place.payload_size - range.offset ||
      range.checked_size > range.into.size()) {
    co_return Status(Code::kInvalid, "a range that does not lie on the shard's sectors");
  }
  const ReadPin pin(segments_[place.segment.value]);
  const uint64_t record = OffsetOf(place.segment.value) + place.sector * kSectorSize;
  const uint64_t payload = record + place.header_sectors * kSectorSize;
  const Status read = co_await parts_.disk.Read(payload + range.offset, range.into);
  if (!read.ok()) co_return read;
  ++stats_.reads;
  stats_.bytes_read += range.into.size();
  if (range.checksum && Checksum(range.into.first(range.checked_size)) != *range.checksum) {
    ++stats_.corrupt_reads;
    co_return Status(Code::kCorrupt, "a piece fails its checksum");
  }
  co_return Status();
}

Task<Status> DiskSegmentLog::ReadVerified(StripeId stripe, ShardIndex index,
                                          MutableByteSpan into) {
  const std::optional<ShardPlace> found = table_.Find(stripe);
  if (!found || found->index != index) co_return Status(Code::kNotFound);
  const ShardPlace place = *found;
  if (into.size() != place.payload_size) {
    co_return Status(Code::kInvalid, "the buffer is not as large as the shard");
  }
  auto manifest = co_await ReadRecord(place, stripe, into);
  co_return manifest.ok() ? Status() : manifest.status();
}

// The record at `place`, verified whole: its payload in `payload` and its manifest. With an empty
// `payload` only the header is read and verified.
Task<Result<Manifest>> DiskSegmentLog::ReadRecord(ShardPlace place, StripeId stripe,
                                                  MutableByteSpan payload) {
  Segment& segment = segments_[place.segment.value];
  const ReadPin pin(segment);
  const uint64_t record = OffsetOf(place.segment.value) + place.sector * kSectorSize;
  Bytes sectors(place.header_sectors * kSectorSize);
  KV_CO_RETURN_IF_ERROR(co_await parts_.disk.Read(record, sectors.sectors()));
  const auto header = PeekRecordHeader(sectors.span().first(kSectorSize), segment.epoch,
                                       superblock_.segment_size);
  ++stats_.reads;
  stats_.bytes_read += sectors.size() + payload.size();
  if (!header || header->stripe != stripe || header->index != place.index ||
      header->header_bytes() != sectors.size() || header->payload_size != place.payload_size) {
    ++stats_.corrupt_reads;
    co_return Status(Code::kCorrupt, "a record header is damaged");
  }
  auto manifest = DecodeRecordManifest(*header, sectors.span());
  if (!manifest.ok()) {
    ++stats_.corrupt_reads;
    co_return manifest.status();
  }
  if (payload.empty()) co_return manifest;
  KV_CO_RETURN_IF_ERROR(co_await parts_.disk.Read(record + sectors.size(), payload));
  const uint64_t checksum = co_await ChecksumOn(parts_.workers, payload);
  if (checksum != header->payload_checksum) {
    ++stats_.corrupt_reads;
    co_return Status(Code::kCorrupt, "a record's payload fails its checksum");
  }
  co_return manifest;
}

Task<Result<Manifest>> DiskSegmentLog::ReadManifest(StripeId stripe) {
  const std::optional<ShardPlace> found = table_.Find(stripe);
  if (!found) co_return Status(Code::kNotFound);
  co_return co_await ReadRecord(*found, stripe, MutableByteSpan());
}

std::optional<ShardIndex> DiskSegmentLog::Find(StripeId stripe) const {
  const std::optional<ShardPlace> place = table_.Find(stripe);
  if (!place) return std::nullopt;
  return place->index;
}

Task<Status> DiskSegmentLog::VisitManifests(
    std::function<void(const Manifest&, ShardIndex)> visit) {
  std::vector<std::pair<ShardPlace, StripeId>> records;
  table_.ForEach([&](StripeId stripe, const ShardPlace& place) {
    records.emplace_back(place, stripe);
  });
  std::sort(records.begin(), records.end());
  for (const auto& [place, stripe] : records) {
    const std::optional<ShardPlace> now = table_.Find(stripe);
    if (now != place) continue;  // Dropped or moved meanwhile.
    auto manifest = co_await ReadRecord(place, stripe, MutableByteSpan());
    if (manifest.ok()) {
      visit(manifest.value(), place.index);
    } else if (manifest.code() != Code::kCorrupt) {
      co_return manifest.status();
    }
  }
  co_return Status();
}

SegmentLogStats DiskSegmentLog::stats() const {
  SegmentLogStats stats = stats_;
  stats.capacity_bytes = segments_.size() * superblock_.segment_size;
  stats.shards = table_.size();
  stats.memory_bytes = table_.memory_bytes() + segments_.size() * sizeof(Segment);
  for (const Segment& segment : segments_) {
    stats.live_bytes += segment.live;
    if (segment.state == SegmentInfo::State::kFree) stats.free_bytes += superblock_.segment_size;
    if (segment.state == SegmentInfo::State::kOpen && segment.slot < kBuckets) {
      stats.free_bytes += superblock_.segment_size - segment.used;
    }
  }
  return stats;
}

}  // namespace cairn::kv
