// Commits: changes of the tables go to the metadata in groups, behind the appends they speak of.
#include <utility>

#include "kvstore/segment/disk_segment_log.h"
#include "kvstore/types/little_endian.h"

namespace cairn::kv {
namespace {

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
std::string TombstoneKey(StripeId stripe) { return IdKey('t', stripe); }

void DiskSegmentLog::NoteChange(Change change) {
  dirty_.insert(change.segment);
  pending_.push_back(std::move(change));
  if (committing_ || gate_.closed()) return;
  committing_ = true;
  gate_.Hold(CommitInBackground());
}

Task<void> DiskSegmentLog::CommitInBackground() {
  Status status;
  while (status.ok() && !pending_.empty()) status = co_await Commit();
  // After a failure the next change, or Sync, tries again.
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
    Segment& segment = segments_[change.segment];
    if (segment.epoch == change.epoch) segment.uncommitted.erase(change.offset);
  }
  co_return status;
}

MetadataBatch DiskSegmentLog::BatchOf(const std::vector<Change>& changes,
                                      const std::set<uint32_t>& dirty) const {
  MetadataBatch batch;
  for (const Change& change : changes) {
    if (change.place) {
      batch.Put(ShardKey(change.stripe), ShardValue(*change.place, change.epoch));
      continue;
    }
    // A moved record's old place is not the stripe's end.
    if (table_.Find(change.stripe) == nullptr) batch.Delete(ShardKey(change.stripe));
    // A scan of the tail would find the record again: say that it is dropped.
    const Segment& segment = segments_[change.segment];
    const bool scanned = segment.epoch == change.epoch && !segment.uncommitted.empty() &&
                         change.offset >= *segment.uncommitted.begin();
    if (scanned) batch.Put(TombstoneKey(change.stripe), {});
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
    if (change.segment == number && change.epoch == segment.epoch) {
      uncommitted.erase(change.offset);
    }
  }
  const uint64_t scanned = uncommitted.empty() ? segment.used : *uncommitted.begin();
  FieldWriter fields;
  fields.Add(static_cast<uint8_t>(segment.state));
  fields.Add(segment.bucket);
  fields.Add(segment.epoch);
  fields.Add(scanned);
  fields.Add(segment.expires_at.value);
  return TextOf(fields);
}

Task<Status> DiskSegmentLog::Sync() {
  KV_CO_RETURN_IF_ERROR(co_await parts_.disk.Sync());
  KV_CO_RETURN_IF_ERROR(co_await Commit());
  co_return co_await parts_.metadata.Sync();
}

Task<Status> DiskSegmentLog::Stop() {
  Status status = co_await Commit();
  co_await gate_.Close();
  if (status.ok()) status = co_await Commit();
  if (status.ok()) status = co_await parts_.metadata.Sync();
  co_return status;
}

}  // namespace cairn::kv
