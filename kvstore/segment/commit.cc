// Commits: changes of the tables go to the metadata in groups, behind the appends they speak of.
#include <utility>

#include "kvstore/segment/disk_segment_log.h"
#include "kvstore/types/little_endian.h"

namespace cairn::kv {
namespace {

constexpr Nanos kRetryAfter = Millis(100);

void AddBigEndian(std::string& key, uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    key.push_back(static_cast<char>(value >> shift));
  }
}

std::string IdKey(char prefix, const Id128& id) {
  std::string key(1, prefix);
  AddBigEndian(key, id.high, 8);
  AddBigEndian(key, id.low, 8);
  return key;
}

std::string TextOf(const FieldWriter& fields) { return std::string(AsText(fields.bytes())); }

std::string ShardValue(const ShardPlace& place, uint64_t epoch) {
  FieldWriter fields;
  fields.Add(place.segment.value);
  fields.Add(epoch);
  fields.Add(place.sector);
  fields.Add(place.payload_size);
  fields.Add(place.header_sectors);
  fields.Add(place.index.value);
  return TextOf(fields);
}

}  // namespace

std::string SegmentKey(uint32_t segment) {
  std::string key = "s";
  AddBigEndian(key, segment, 4);
  return key;
}
std::string ShardKey(StripeId stripe) { return IdKey('h', stripe); }
std::string TombstoneKey(uint32_t segment, uint64_t epoch, uint64_t offset) {
  std::string key = "t";
  AddBigEndian(key, segment, 4);
  AddBigEndian(key, epoch, 8);
  AddBigEndian(key, offset, 8);
  return key;
}

DiskSegmentLog::RecordName DiskSegmentLog::NameOf(const ShardPlace& place) const {
  return {place.segment.value, segments_[place.segment.value].epoch,
          place.sector * kSectorSize};
}

void DiskSegmentLog::NoteChange(Change change) {
  dirty_.insert(change.record.segment);
  pending_.push_back(std::move(change));
  if (committing_ || gate_.closed() || parts_.clock.Now() < retry_at_) return;
  committing_ = true;
  gate_.Hold(CommitInBackground());
}

Task<void> DiskSegmentLog::CommitInBackground() {
  Status status;
  while (status.ok() && !pending_.empty()) status = co_await Commit();
  // A Sync, or the next change after a while, tries again: not each, with all that is pending.
  if (!status.ok()) retry_at_ = parts_.clock.Now() + kRetryAfter;
  committing_ = false;
}

Task<Status> DiskSegmentLog::Commit() {
  const auto permit = co_await commit_lock_.Acquire(1);
  if (pending_.empty() && dirty_.empty()) co_return Status();
  std::vector<Change> changes = std::exchange(pending_, {});
  std::set<uint32_t> dirty = std::exchange(dirty_, {});
  MetadataBatch batch = BatchOf(changes, dirty);
  Status status = co_await parts_.metadata.Write(std::move(batch));
  if (!status.ok()) {
    changes.insert(changes.end(), std::make_move_iterator(pending_.begin()),
                   std::make_move_iterator(pending_.end()));
    pending_ = std::move(changes);
    dirty_.merge(dirty);
    co_return status;
  }
  for (const Change& change : changes) {
    Segment& segment = segments_[change.record.segment];
    if (segment.epoch == change.record.epoch) segment.uncommitted.erase(change.record.offset);
  }
  co_return status;
}

MetadataBatch DiskSegmentLog::BatchOf(const std::vector<Change>& changes,
                                      const std::set<uint32_t>& dirty) const {
  MetadataBatch batch;
  for (const Change& change : changes) {
    if (change.place) {
      batch.Put(ShardKey(change.stripe), ShardValue(*change.place, change.record.epoch));
      continue;
    }
    // A moved record's old place is not the stripe's end.
    if (!table_.Find(change.stripe)) batch.Delete(ShardKey(change.stripe));
    // A scan of the tail would find the record again: say that it is garbage.
    const RecordName& record = change.record;
    const Segment& segment = segments_[record.segment];
    const bool scanned = segment.epoch == record.epoch && !segment.uncommitted.empty() &&
                         record.offset >= *segment.uncommitted.begin();
    if (scanned) batch.Put(TombstoneKey(record.segment, record.epoch, record.offset), {});
  }
  for (const uint32_t segment : dirty) {
    batch.Put(SegmentKey(segment), SegmentValue(segment, changes));
  }
  return batch;
}

// As it will be once `changes` are committed.
std::string DiskSegmentLog::SegmentValue(uint32_t number,
                                         const std::vector<Change>& changes) const {
  const Segment& segment = segments_[number];
  std::set<uint64_t> uncommitted = segment.uncommitted;
  for (const Change& change : changes) {
    if (change.record.segment == number && change.record.epoch == segment.epoch) {
      uncommitted.erase(change.record.offset);
    }
  }
  uint64_t scanned = uncommitted.empty() ? segment.used : *uncommitted.begin();
  // Nothing more can be found in it.
  const bool whole = segment.state == SegmentInfo::State::kSealed && uncommitted.empty();
  if (whole) scanned = superblock_.segment_size;
  FieldWriter fields;
  fields.Add(static_cast<uint8_t>(segment.state));
  fields.Add(segment.bucket);
  fields.Add(segment.epoch);
  fields.Add(scanned);
  fields.Add(segment.durable);
  fields.Add(segment.expires_at.value);
  return TextOf(fields);
}

// All that is written becomes durable; metadata then says so. The metadata may reach its disk at
// any time, also before the records that it speaks of: recovery trusts it only below `durable`.
Task<Status> DiskSegmentLog::SyncDisk() {
  std::vector<std::pair<RecordName, uint64_t>> ends;
  for (const uint32_t number : unsynced_) {
    const Segment& segment = segments_[number];
    const uint64_t end = segment.writing.empty() ? segment.used : *segment.writing.begin();
    ends.push_back({{number, segment.epoch, 0}, end});
  }
  std::vector<MovedRecord> moved = std::exchange(moved_, {});
  const Status status = co_await parts_.disk.Sync();
  if (!status.ok()) {
    moved_.insert(moved_.begin(), moved.begin(), moved.end());
    co_return status;
  }
  for (const auto& [name, end] : ends) {
    Segment& segment = segments_[name.segment];
    if (segment.epoch != name.epoch || end <= segment.durable) continue;
    segment.durable = end;
    if (segment.durable == segment.used) unsynced_.erase(name.segment);
    dirty_.insert(name.segment);
  }
  for (const MovedRecord& move : moved) {
    const std::optional<ShardPlace> now = table_.Find(move.stripe);
    const bool current = now && NameOf(*now) == move.record;
    Change change{.stripe = move.stripe, .place = std::nullopt, .record = move.record};
    if (current) change.place = move.place;
    NoteChange(std::move(change));
    NoteChange({.stripe = move.stripe, .place = std::nullopt, .record = move.replaced});
  }
  co_return status;
}

Task<Status> DiskSegmentLog::Sync() {
  KV_CO_RETURN_IF_ERROR(co_await SyncDisk());
  KV_CO_RETURN_IF_ERROR(co_await Commit());
  co_return co_await parts_.metadata.Sync();
}

Task<Status> DiskSegmentLog::Stop() {
  const Status status = co_await Sync();
  co_await gate_.Close();
  co_return status;
}

}  // namespace cairn::kv
