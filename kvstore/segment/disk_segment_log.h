// The segment log over a Disk: its state, and the parts that its sources define.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kvstore/async/gate.h"
#include "kvstore/async/semaphore.h"
#include "kvstore/segment/format.h"
#include "kvstore/segment/segment_log.h"
#include "kvstore/segment/shard_table.h"

namespace cairn::kv {

// Writers may run this far ahead of the oldest append that is not done: what a scan for the end of
// a segment must be ready to step over.
inline constexpr uint64_t kAppendWindow = 16 * kMiB;
// Bounds of the expiry buckets, as time from now; the last bucket has no bound.
inline constexpr std::array<int64_t, 8> kBucketSeconds = {
    60, 300, 900, 3600, 6 * 3600, 24 * 3600, 72 * 3600, 168 * 3600};
inline constexpr uint32_t kBuckets = kBucketSeconds.size() + 1;

class DiskSegmentLog final : public SegmentLog {
 public:
  DiskSegmentLog(Parts parts, const Superblock& superblock);

  // Brings metadata and segments together again (recovery.cc). Called once, by Open.
  Task<Status> Recover();

  TargetId id() const override { return superblock_.target; }
  Task<Status> Append(const Manifest& manifest, ShardIndex index, ShardPayload payload) override;
  Task<Status> Read(Range range) override;
  Task<Status> ReadVerified(StripeId stripe, ShardIndex index, MutableByteSpan into) override;
  std::optional<ShardIndex> Find(StripeId stripe) const override;
  Task<Status> Drop(StripeId stripe) override;
  Task<Status> Sync() override;
  std::vector<SegmentInfo> segments() const override;
  std::vector<StripeId> StripesIn(SegmentId segment) const override;
  std::optional<StripeId> VisitShards(
      std::optional<StripeId> after, size_t count,
      const std::function<void(const HeldShard&)>& visit) const override;
  Task<Status> Move(StripeId stripe) override;
  Task<Status> Free(SegmentId segment) override;
  Task<Status> VisitManifests(std::function<void(const Manifest&, ShardIndex)> visit) override;
  std::vector<StripeId> TakeRecovered() override { return std::exchange(recovered_, {}); }
  Task<Result<Manifest>> ReadManifest(StripeId stripe) override;
  SegmentLogStats stats() const override;
  Task<Status> Stop() override;

 private:
  struct Segment {
    SegmentInfo::State state = SegmentInfo::State::kFree;
    uint8_t bucket = 0;
    uint8_t slot = 0;  // Of open_, while it is open.
    bool freeing = false;
    bool moved_out = false;  // Some record's only copy is now in another segment.
    uint64_t epoch = 0;
    uint64_t used = 0;  // Where the next record goes, from the segment's start.
    uint64_t live = 0;
    UnixMillis expires_at;
    uint64_t durable = 0;  // Records below are on the disk for good.
    std::set<uint64_t> writing;  // Appends in flight, by offset.
    uint32_t readers = 0;  // In flight.
    std::unique_ptr<Event> unread;   // Set when the last reader leaves; made by Free.
    std::set<uint64_t> uncommitted;  // Records that the metadata may not know yet, by offset.
  };
  // Keeps a segment from being freed while it is read.
  class ReadPin;
  enum class Purpose { kPut, kMove };
  struct Reservation {
    uint32_t segment = 0;
    uint64_t offset = 0;
  };
  // Names a record for as long as there are segments.
  struct RecordName {
    uint32_t segment = 0;
    uint64_t epoch = 0;
    uint64_t offset = 0;
    auto operator<=>(const RecordName&) const = default;
  };
  // One change of the shard table that is to be committed.
  struct Change {
    StripeId stripe;
    std::optional<ShardPlace> place;  // None: the record is garbage.
    RecordName record;
  };
  // A copy that is in the table, and committed only when it is durable: until then the record that
  // it replaces is what a power cut leaves.
  struct MovedRecord {
    StripeId stripe;
    ShardPlace place;
    RecordName record;
    RecordName replaced;
  };
  // Appending (append.cc).
  Task<Result<ShardPlace>> AppendRecord(const Manifest& manifest, ShardIndex index,
                                        ShardPayload payload, Purpose purpose);
  Task<Result<Reservation>> Reserve(uint64_t bytes, uint32_t slot, Purpose purpose);
  std::optional<Reservation> TryReserve(uint32_t segment, uint64_t bytes);
  std::optional<Reservation> ReserveAnywhere(uint64_t bytes);
  Task<Status> OpenSegment(uint32_t segment, uint32_t slot);
  uint32_t SlotOf(UnixMillis expires_at, Purpose purpose) const;
  uint32_t BucketOf(UnixMillis expires_at) const;
  void Insert(StripeId stripe, const ShardPlace& place);
  void Forget(StripeId stripe, const ShardPlace& place);

  // Committing (commit.cc).
  RecordName NameOf(const ShardPlace& place) const;
  Task<Status> SyncDisk();
  void NoteChange(Change change);
  Task<void> CommitInBackground();
  Task<Status> Commit();
  MetadataBatch BatchOf(const std::vector<Change>& changes, const std::set<uint32_t>& dirty) const;
  std::string SegmentValue(uint32_t segment, const std::vector<Change>& changes) const;

  // Recovery (recovery.cc).
  Task<Status> LoadSegments();
  Task<Status> ForgetOtherTarget();
  void LoadShard(const MetadataStore::Entry& entry);
  Task<Status> VerifyUnsynced(StripeId stripe);
  void LoadTombstone(const MetadataStore::Entry& entry);
  Task<Status> ReconcileHeader(uint32_t segment);
  Task<Status> ScanTail(uint32_t segment);
  Task<Result<uint64_t>> TakeRecord(uint32_t segment, uint64_t offset, RecordHeader header,
                                    ByteSpan bytes);
  void OpenAgain(uint32_t segment);

  Task<Result<Manifest>> ReadRecord(ShardPlace place, StripeId stripe, MutableByteSpan payload);
  uint64_t OffsetOf(uint32_t segment) const {
    return kSegmentsOffset + segment * superblock_.segment_size;
  }
  uint32_t free_segments() const;

  // Constant after Open.
  Parts parts_;
  const Superblock superblock_;
  uint32_t buckets_used_ = kBuckets;

  std::vector<Segment> segments_;
  // By slot: puts by bucket, then moves by bucket. What is moved has been used and lives longer
  // than what is new; and targets that hold the same stripes stay in step.
  std::array<std::optional<uint32_t>, 2 * kBuckets> open_;
  ShardTable table_;
  std::vector<StripeId> recovered_;
  SegmentLogStats stats_;

  std::vector<Change> pending_;  // To be committed, in order.
  std::set<uint32_t> dirty_;     // Segments whose entry is to be written.
  std::set<uint32_t> unsynced_;  // Segments with records that are not durable.
  std::vector<MovedRecord> moved_;
  bool committing_ = false;      // A background commit is on its way.
  Instant retry_at_;             // After one that has failed.

  // Only during recovery.
  struct Tail {
    bool scan = false;
    uint64_t from = 0;
  };
  std::vector<Tail> tails_;
  std::vector<std::unique_ptr<Segment>> known_;  // As the metadata says; null: it says nothing.
  std::set<RecordName> tombstones_;
  std::vector<StripeId> doubtful_;  // Committed, and perhaps lost in a power cut.

  Semaphore append_window_;
  Semaphore opening_;  // One segment is opened at a time.
  Semaphore commit_lock_;
  Gate gate_;
};

// Metadata keys and values: docs/formats/segment.md.
std::string SegmentKey(uint32_t segment);
std::string ShardKey(StripeId stripe);
std::string TombstoneKey(uint32_t segment, uint64_t epoch, uint64_t offset);
inline constexpr char kTargetKey[] = "i";

}  // namespace cairn::kv
