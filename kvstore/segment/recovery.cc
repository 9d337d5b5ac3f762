// Opens a target: what the metadata says, corrected by what the segments show.
#include <algorithm>
#include <utility>

#include "kvstore/async/lanes.h"
#include "kvstore/metadata/metadata_scan.h"
#include "kvstore/segment/disk_segment_log.h"
#include "kvstore/types/little_endian.h"

namespace cairn::kv {
namespace {

// Side by side: reads of segment headers and of doubtful records; segments that are scanned, each
// with a window in memory.
constexpr uint64_t kReadsAtOnce = 32;
constexpr uint64_t kVerifiesAtOnce = 4;
constexpr uint64_t kScansAtOnce = 2;
constexpr uint64_t kScanWindow = 2 * kMiB;
// With fewer segments than this per bucket, buckets are merged: open segments must stay few.
constexpr uint64_t kSegmentsPerBucket = 8;

uint64_t BigEndian(const std::string& key, size_t offset, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value = value << 8 | static_cast<uint8_t>(key[offset + i]);
  return value;
}

StripeId StripeOfKey(const std::string& key) {
  KV_CHECK(key.size() == 17);
  const uint64_t high = BigEndian(key, 1, 8);
  const uint64_t low = BigEndian(key, 9, 8);
  return {{high, low}};
}

Task<Status> WriteSuperblock(Disk& disk, Superblock superblock) {
  const Bytes sector = EncodeSuperblock(superblock);
  for (const uint64_t offset : kSuperblockOffsets) {
    KV_CO_RETURN_IF_ERROR(co_await disk.Write(offset, sector.sectors()));
  }
  co_return co_await disk.Sync();
}

Task<Result<Superblock>> Format(SegmentLog::Parts parts, uint64_t segment_size) {
  const uint64_t size = parts.disk.size();
  if (segment_size % kSectorSize != 0 || segment_size < kSegmentSizeMin ||
      segment_size > kSegmentSizeMax) {
    co_return Status(Code::kInvalid, "segment_size must be whole sectors, 4 MiB to 1 GiB");
  }
  const uint64_t count = size < kSegmentsOffset ? 0 : (size - kSegmentsOffset) / segment_size;
  if (count < 4) {
    co_return Status(Code::kInvalid, "a target of " + std::to_string(size) +
                                         " bytes is too small: four segments of " +
                                         std::to_string(segment_size) + " bytes are the least");
  }
  if (count > kSegmentsMax) {
    co_return Status(Code::kInvalid,
                     "a target of " + std::to_string(size) + " bytes needs a segment_size of " +
                         std::to_string(AlignUp(size / kSegmentsMax + 1, kMiB)) + " or more");
  }
  Superblock superblock;
  superblock.target = {parts.random.Next() | 1};
  superblock.segment_size = segment_size;
  superblock.segment_count = static_cast<uint32_t>(count);
  KV_CO_RETURN_IF_ERROR(co_await WriteSuperblock(parts.disk, superblock));
  co_return superblock;
}

// Both copies: one whole copy is enough, but another version in either one is respected.
Task<Result<std::optional<Superblock>>> ReadSuperblock(Disk& disk) {
  std::optional<Superblock> found;
  Status damage;
  if (disk.size() < kSegmentsOffset) co_return found;
  for (const uint64_t offset : kSuperblockOffsets) {
    Bytes sector(kSectorSize);
    KV_CO_RETURN_IF_ERROR(co_await disk.Read(offset, sector.sectors()));
    auto decoded = DecodeSuperblock(sector.span());
    if (!decoded.ok()) {
      if (decoded.code() == Code::kConflict) co_return decoded.status();
      damage = decoded.status();
    } else if (decoded.value() && !found) {
      found = decoded.value();
    }
  }
  if (found) co_return found;
  // Sectors are written whole, so a format that was cut short leaves blank copies, not damaged
  // ones: a damaged one may be somebody else's file system.
  if (damage.ok()) co_return found;
  co_return damage;
}

}  // namespace

Task<Status> SegmentLog::CheckVersion(Disk& disk) {
  const auto read = co_await ReadSuperblock(disk);
  if (read.code() == Code::kConflict) co_return read.status();
  co_return Status();
}

Task<Result<std::unique_ptr<SegmentLog>>> SegmentLog::Open(Parts parts, SegmentLogOptions options) {
  auto read = co_await ReadSuperblock(parts.disk);
  if (!read.ok()) co_return read.status();
  std::optional<Superblock> superblock = read.value();
  if (!superblock) {
    auto formatted = co_await Format(parts, options.segment_size);
    if (!formatted.ok()) co_return formatted.status();
    superblock = formatted.value();
  }
  const uint64_t needed =
      kSegmentsOffset + superblock->segment_count * superblock->segment_size;
  if (needed > parts.disk.size()) {
    co_return Status(Code::kCorrupt, "the target has shrunk: it was formatted for " +
                                         std::to_string(needed) + " bytes and has " +
                                         std::to_string(parts.disk.size()));
  }
  auto log = std::make_unique<DiskSegmentLog>(parts, *superblock);
  KV_CO_RETURN_IF_ERROR(co_await log->Recover());
  co_return std::unique_ptr<SegmentLog>(std::move(log));
}

DiskSegmentLog::DiskSegmentLog(Parts parts, const Superblock& superblock)
    : parts_(parts),
      superblock_(superblock),
      segments_(superblock.segment_count),
      append_window_(parts.loop, kAppendWindow),
      opening_(parts.loop, 1),
      commit_lock_(parts.loop, 1),
      gate_(parts.loop) {
  buckets_used_ = static_cast<uint32_t>(
      std::clamp<uint64_t>(superblock.segment_count / kSegmentsPerBucket, 1, kBuckets));
}

Task<Status> DiskSegmentLog::Recover() {
  tails_.assign(segments_.size(), {});
  known_.resize(segments_.size());
  KV_CO_RETURN_IF_ERROR(co_await ForgetOtherTarget());
  KV_CO_RETURN_IF_ERROR(co_await LoadSegments());
  const auto reconcile = [this](uint64_t i) { return ReconcileHeader(static_cast<uint32_t>(i)); };
  KV_CO_RETURN_IF_ERROR(co_await RunInLanes(segments_.size(), kReadsAtOnce, reconcile));
  const auto load = [this](const MetadataStore::Entry& entry) { LoadShard(entry); };
  KV_CO_RETURN_IF_ERROR(co_await ScanAll(parts_.workers, parts_.metadata, std::string("h"), load));
  const auto verify = [this](uint64_t i) { return VerifyUnsynced(doubtful_[i]); };
  KV_CO_RETURN_IF_ERROR(co_await RunInLanes(doubtful_.size(), kVerifiesAtOnce, verify));
  const auto note = [this](const MetadataStore::Entry& entry) { LoadTombstone(entry); };
  KV_CO_RETURN_IF_ERROR(co_await ScanAll(parts_.workers, parts_.metadata, std::string("t"), note));
  const auto scan = [this](uint64_t i) { return ScanTail(static_cast<uint32_t>(i)); };
  KV_CO_RETURN_IF_ERROR(co_await RunInLanes(segments_.size(), kScansAtOnce, scan));
  for (uint32_t i = 0; i < segments_.size(); ++i) OpenAgain(i);
  MetadataBatch cleared;
  for (const RecordName& name : tombstones_) {
    cleared.Delete(TombstoneKey(name.segment, name.epoch, name.offset));
  }
  KV_CO_RETURN_IF_ERROR(co_await SyncDisk());
  KV_CO_RETURN_IF_ERROR(co_await Commit());
  // Only now: until the scanned offsets are committed the tombstones still count.
  if (!cleared.empty()) KV_CO_RETURN_IF_ERROR(co_await parts_.metadata.Write(std::move(cleared)));
  tails_.clear();
  known_.clear();
  tombstones_.clear();
  doubtful_.clear();
  co_return Status();
}

// Metadata of another target, which lay here before, says nothing of this one.
Task<Status> DiskSegmentLog::ForgetOtherTarget() {
  FieldWriter own;
  own.Add(superblock_.target.value);
  const std::string expected(AsText(own.bytes()));
  auto known = co_await parts_.metadata.Get(kTargetKey);
  if (!known.ok() && known.code() != Code::kNotFound) co_return known.status();
  if (known.ok() && known.value() == expected) co_return Status();
  for (const char* prefix : {"s", "h", "t"}) {
    while (true) {
      auto entries = co_await parts_.metadata.Scan(prefix, "", kScanPage);
      if (!entries.ok()) co_return entries.status();
      if (entries.value().empty()) break;
      MetadataBatch batch;
      for (const MetadataStore::Entry& entry : entries.value()) batch.Delete(entry.key);
      KV_CO_RETURN_IF_ERROR(co_await parts_.metadata.Write(std::move(batch)));
    }
  }
  MetadataBatch batch;
  batch.Put(kTargetKey, expected);
  co_return co_await parts_.metadata.Write(std::move(batch));
}

Task<Status> DiskSegmentLog::LoadSegments() {
  auto entries = co_await parts_.metadata.Scan("s", "", segments_.size() + 1);
  if (!entries.ok()) co_return entries.status();
  for (const MetadataStore::Entry& entry : entries.value()) {
    uint32_t number = 0;
    for (size_t i = 1; i < entry.key.size(); ++i) {
      number = number << 8 | static_cast<uint8_t>(entry.key[i]);
    }
    if (entry.key.size() != 5 || number >= segments_.size()) continue;
    FieldReader fields(AsBytes(entry.value));
    auto known = std::make_unique<Segment>();
    Segment& segment = *known;
    segment.state = static_cast<SegmentInfo::State>(fields.Take<uint8_t>());
    segment.bucket = fields.Take<uint8_t>();
    segment.epoch = fields.Take<uint64_t>();
    segment.used = fields.Take<uint64_t>();  // Up to here all is committed.
    segment.durable = fields.Take<uint64_t>();
    segment.expires_at.value = fields.Take<int64_t>();
    const bool whole = fields.fits() && segment.state <= SegmentInfo::State::kSealed &&
                       segment.bucket < kBuckets && segment.used <= superblock_.segment_size;
    if (whole) known_[number] = std::move(known);
  }
  co_return Status();
}

// The header on the disk names the segment's present use; metadata of another use is void.
Task<Status> DiskSegmentLog::ReconcileHeader(uint32_t number) {
  Bytes sector(kSectorSize);
  KV_CO_RETURN_IF_ERROR(co_await parts_.disk.Read(OffsetOf(number), sector.sectors()));
  const std::optional<SegmentHeader> header = DecodeSegmentHeader(sector.span());
  Segment& segment = segments_[number];
  const Segment* known = known_[number].get();
  segment.epoch = known != nullptr ? known->epoch : 0;
  const bool whole =
      header && header->target == superblock_.target && header->segment == number;
  if (!whole && known == nullptr) co_return Status();  // Never used, or two faults at once: free.
  // A damaged header is no loss while the metadata remembers the epoch.
  const uint64_t epoch = whole ? header->epoch : known->epoch;
  if (epoch < segment.epoch) co_return Status();  // A later use was lost in a power cut.
  const bool same_use = known != nullptr && known->epoch == epoch;
  if (same_use && known->state == SegmentInfo::State::kFree) co_return Status();
  segment.epoch = epoch;
  segment.state = SegmentInfo::State::kSealed;
  segment.used = kSectorSize;
  if (same_use) {
    segment.state = known->state;
    segment.bucket = known->bucket;
    segment.used = std::max(known->used, kSectorSize);
    segment.durable = known->durable;
    segment.expires_at = known->expires_at;
  }
  tails_[number] = {true, segment.used};
  co_return Status();
}

void DiskSegmentLog::LoadShard(const MetadataStore::Entry& entry) {
  FieldReader fields(AsBytes(entry.value));
  ShardPlace place;
  place.segment.value = fields.Take<uint32_t>();
  const auto epoch = fields.Take<uint64_t>();
  place.sector = fields.Take<uint32_t>();
  place.payload_size = fields.Take<uint32_t>();
  place.header_sectors = fields.Take<uint16_t>();
  place.index.value = fields.Take<uint8_t>();
  if (entry.key.size() != 17 || !fields.fits() || !IsPackable(place) ||
      place.segment.value >= segments_.size()) {
    return;
  }
  Segment& segment = segments_[place.segment.value];
  const uint64_t offset = place.sector * kSectorSize;
  const uint64_t end = offset + place.record_bytes();
  const StripeId stripe = StripeOfKey(entry.key);
  if (segment.state == SegmentInfo::State::kFree || segment.epoch != epoch ||
      end > superblock_.segment_size) {
    const RecordName record{place.segment.value, epoch, offset};
    pending_.push_back({.stripe = stripe, .place = std::nullopt, .record = record});
    return;
  }
  table_.Set(stripe, place);
  segment.live += place.record_bytes();
  segment.used = std::max(segment.used, end);
  if (end > segment.durable) doubtful_.push_back(stripe);
}

// The metadata may have outlived records that a power cut took.
Task<Status> DiskSegmentLog::VerifyUnsynced(StripeId stripe) {
  const ShardPlace place = *table_.Find(stripe);
  Bytes payload(place.payload_size);
  auto manifest = co_await ReadRecord(place, stripe, payload.span());
  if (manifest.ok()) co_return Status();
  if (manifest.code() != Code::kCorrupt) co_return manifest.status();
  segments_[place.segment.value].live -= place.record_bytes();
  table_.Erase(stripe);
  pending_.push_back({.stripe = stripe, .place = std::nullopt, .record = NameOf(place)});
  co_return Status();
}

void DiskSegmentLog::LoadTombstone(const MetadataStore::Entry& entry) {
  if (entry.key.size() != 21) return;
  RecordName name;
  name.segment = static_cast<uint32_t>(BigEndian(entry.key, 1, 4));
  name.epoch = BigEndian(entry.key, 5, 8);
  name.offset = BigEndian(entry.key, 13, 8);
  tombstones_.insert(name);
}

// Finds whole records behind what the metadata knows; see "Finding the end" in the format.
Task<Status> DiskSegmentLog::ScanTail(uint32_t number) {
  if (!tails_[number].scan) co_return Status();
  Segment& segment = segments_[number];
  uint64_t at = tails_[number].from;
  uint64_t end = std::max(at, segment.used);  // Of the last record known.
  if (at >= superblock_.segment_size) co_return Status();  // Sealed, and known to its end.
  Bytes window(kScanWindow);
  while (at < superblock_.segment_size && at <= end + kAppendWindow) {
    const uint64_t size = std::min(kScanWindow, superblock_.segment_size - at);
    const MutableByteSpan bytes = window.span().first(size);
    KV_CO_RETURN_IF_ERROR(co_await parts_.disk.Read(OffsetOf(number) + at, bytes));
    uint64_t inside = 0;
    while (inside < size) {
      const ByteSpan rest = bytes.subspan(inside);
      const auto header = PeekRecordHeader(rest.first(kSectorSize), segment.epoch,
                                           superblock_.segment_size - at - inside);
      // What goes beyond the window is looked at again from its start.
      if (header && header->record_bytes() > rest.size() && inside > 0) break;
      uint64_t taken = 0;
      if (header) {
        auto record = co_await TakeRecord(number, at + inside, *header, rest);
        if (!record.ok()) co_return record.status();
        taken = record.value();
      }
      if (taken == 0) {
        inside += kSectorSize;
        continue;
      }
      inside += taken;
      end = std::max(end, at + inside);
    }
    at += inside;
  }
  segment.used = end;
  co_return Status();
}

// A scanned segment that was open goes on where its last record ends.
void DiskSegmentLog::OpenAgain(uint32_t number) {
  if (!tails_[number].scan) return;
  Segment& segment = segments_[number];
  unsynced_.insert(number);
  if (segment.state == SegmentInfo::State::kOpen) {
    if (open_[segment.bucket] || segment.bucket >= buckets_used_) {
      segment.state = SegmentInfo::State::kSealed;
    } else {
      open_[segment.bucket] = number;
      segment.slot = segment.bucket;
    }
  }
  dirty_.insert(number);
}

// Enters the record that starts at `offset`, of which `bytes` are what follows there, if it is
// whole. Its length, or 0.
Task<Result<uint64_t>> DiskSegmentLog::TakeRecord(uint32_t number, uint64_t offset,
                                                  RecordHeader header, ByteSpan bytes) {
  Segment& segment = segments_[number];
  const ShardPlace place{.segment = {number},
                         .sector = static_cast<uint32_t>(offset / kSectorSize),
                         .payload_size = header.payload_size,
                         .header_sectors =
                             static_cast<uint16_t>(header.header_bytes() / kSectorSize),
                         .index = header.index};
  if (!IsPackable(place)) co_return uint64_t{0};
  if (table_.Find(header.stripe) == place) co_return header.record_bytes();
  UnixMillis expires_at;
  if (header.record_bytes() <= bytes.size()) {
    auto manifest = DecodeRecordManifest(header, bytes.first(header.header_bytes()));
    const ByteSpan payload = bytes.subspan(header.header_bytes(), header.payload_size);
    if (!manifest.ok()) co_return uint64_t{0};
    const uint64_t checksum = co_await ChecksumOn(parts_.workers, payload);
    if (checksum != header.payload_checksum) co_return uint64_t{0};
    expires_at = manifest.value().retention.expires_at;
  } else {
    Bytes payload(header.payload_size);
    auto manifest = co_await ReadRecord(place, header.stripe, payload.span());
    if (manifest.code() == Code::kCorrupt) co_return uint64_t{0};
    if (!manifest.ok()) co_return manifest.status();
    expires_at = manifest.value().retention.expires_at;
  }
  // Dropped, or the older copy of one that was moved: whole, but garbage.
  const RecordName record{number, segment.epoch, offset};
  if (tombstones_.contains(record) || table_.Find(header.stripe)) co_return header.record_bytes();
  table_.Set(header.stripe, place);
  segment.live += place.record_bytes();
  segment.expires_at = std::max(segment.expires_at, expires_at);
  pending_.push_back({.stripe = header.stripe, .place = place, .record = record});
  ++stats_.records_recovered;
  recovered_.push_back(header.stripe);
  co_return header.record_bytes();
}

}  // namespace cairn::kv
