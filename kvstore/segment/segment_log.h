// One target's bytes: a log of segments that holds shard records, and the table of where they lie.
//
// Format: docs/formats/segment.md. Records are appended to open segments, one per retention bucket,
// so that neighbours expire together. A sealed segment is immutable; a segment is freed whole, and
// its next use carries a higher epoch, so that no old record in it can be read again.
// Loop thread only. Between Open and Stop any number of calls may be in flight.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kvstore/async/loop.h"
#include "kvstore/async/task.h"
#include "kvstore/base/log.h"
#include "kvstore/base/random.h"
#include "kvstore/io/clock.h"
#include "kvstore/io/disk.h"
#include "kvstore/io/workers.h"
#include "kvstore/metadata/metadata_store.h"
#include "kvstore/types/ids.h"
#include "kvstore/types/limits.h"
#include "kvstore/types/manifest.h"

namespace cairn::kv {

struct SegmentLogOptions {
  uint64_t segment_size = kSegmentSizeDefault;  // Fixed when formatted; ignored when opening.
};

struct SegmentId {
  uint32_t value = 0;
  auto operator<=>(const SegmentId&) const = default;
};

struct SegmentInfo {
  enum class State : uint8_t { kFree, kOpen, kSealed };
  SegmentId id;
  State state = State::kFree;
  uint64_t epoch = 0;
  uint64_t used_bytes = 0;  // Appended since the segment was opened.
  uint64_t live_bytes = 0;  // Of records not dropped.
  UnixMillis expires_at;    // The latest expiry of any record in it, as of writing.
};

struct SegmentLogStats {
  uint64_t capacity_bytes = 0;
  uint64_t free_bytes = 0;      // In free segments and in the rest of those open for puts.
  uint64_t live_bytes = 0;
  uint64_t shards = 0;
  uint64_t records_appended = 0;
  uint64_t bytes_appended = 0;  // Headers and payloads, as written to the disk.
  uint64_t bytes_moved = 0;     // Of these, by Move: rewriting.
  uint64_t reads = 0;
  uint64_t bytes_read = 0;
  uint64_t corrupt_reads = 0;   // A checksum failed on the target's side.
  uint64_t records_recovered = 0;  // Found by Open beyond the last committed metadata.
  uint64_t memory_bytes = 0;    // Of the shard and segment tables.
};

// A shard as it is appended: its bytes, and their XXH3-64, which goes into the record.
struct ShardPayload {
  ByteSpan bytes;
  uint64_t checksum = 0;
};

class SegmentLog {
 public:
  virtual ~SegmentLog() = default;

  // kConflict when the disk is formatted by another version: what Open would say, with nothing
  // written yet.
  static Task<Status> CheckVersion(Disk& disk);

  // Formats an empty target, or opens a formatted one and replays what its metadata missed.
  // kConflict: formatted by an unknown or older version (the message says which are known).
  // kCorrupt: a superblock that is neither blank nor whole. Nothing is written in either case.
  // Everything passed in must outlive the result.
  struct Parts {
    Loop& loop;
    Clock& clock;
    Workers& workers;
    Disk& disk;
    MetadataStore& metadata;
    Random& random;
    Log& log;
  };
  static Task<Result<std::unique_ptr<SegmentLog>>> Open(Parts parts, SegmentLogOptions options);

  virtual TargetId id() const = 0;

  // Appends shard `index` of the manifest's stripe. The payload: shard_size bytes in sector-aligned
  // memory, the caller's until done, which means: written, and in the shard table (ack kCached). A
  // Sync makes it durable. kNoSpace: the caller frees segments. kUnavailable also while too much
  // waits for metadata that takes no writes. A second append of the same writes nothing and is ok.
  virtual Task<Status> Append(const Manifest& manifest, ShardIndex index,
                              ShardPayload payload) = 0;

  // Reads bytes [offset, offset + into.size()) of the shard's payload: sector-aligned offset, size
  // and memory. With `checksum`, the first `checked_size` bytes must have that XXH3-64.
  // kNotFound when this target does not hold the shard (any more). Lands in `into` without a copy.
  struct Range {
    StripeId stripe;
    ShardIndex index;
    uint32_t offset = 0;
    MutableByteSpan into;
    std::optional<uint64_t> checksum;
    uint32_t checked_size = 0;
    // kDeadline then, where the read can be given up: a target of another node, not one's own.
    Instant give_up_at = kNever;
  };
  virtual Task<Status> Read(Range range) = 0;

  // Reads the whole record and verifies its own checksum: for scrubbing, and to find which survivor
  // is damaged when a decode does not fit. `into` is shard_size bytes.
  virtual Task<Status> ReadVerified(StripeId stripe, ShardIndex index, MutableByteSpan into) = 0;

  // Which shard of the stripe this target holds, if any. From memory.
  virtual std::optional<ShardIndex> Find(StripeId stripe) const = 0;

  // Marks the stripe's shard here as garbage. Dropping what is not there is fine.
  virtual Task<Status> Drop(StripeId stripe) = 0;

  // Every write and drop that was done when Sync was called survives a power cut.
  virtual Task<Status> Sync() = 0;

  // --- For reclaim. The policy lives above; this says what is where and frees it. ---

  virtual std::vector<SegmentInfo> segments() const = 0;
  // The stripes with a live shard in the segment, by ascending offset. From memory, and over the
  // whole table: for tools and tests.
  virtual std::vector<StripeId> StripesIn(SegmentId segment) const = 0;
  // A shard that is not dropped, and what its record takes.
  struct HeldShard {
    StripeId stripe;
    SegmentId segment;
    uint64_t record_bytes = 0;
  };
  // Walks over all shards held here in pieces, while they change: visits at most `count` of them
  // behind `after` (which may be gone), and returns the last one visited; none at the end. From
  // memory; what comes or goes meanwhile may be seen or not.
  virtual std::optional<StripeId> VisitShards(
      std::optional<StripeId> after, size_t count,
      const std::function<void(const HeldShard&)>& visit) const = 0;
  // Re-appends a live shard to another open segment (kNoSpace as Append), then drops the old one.
  virtual Task<Status> Move(StripeId stripe) = 0;
  // Frees a sealed segment that has no live bytes. Waits for reads in flight in it. kInvalid when
  // it is not sealed or has live bytes. Its space is usable when the task is done.
  virtual Task<Status> Free(SegmentId segment) = 0;

  // Calls `visit` with the manifest of every live record, reading record headers from the disk:
  // to rebuild an index from nothing. Damaged headers are skipped and counted.
  virtual Task<Status> VisitManifests(std::function<void(const Manifest&, ShardIndex)> visit) = 0;
  // Stripes whose records Open found beyond the last committed metadata: their publication may be
  // missing from the index. Their manifests can be read.
  virtual std::vector<StripeId> TakeRecovered() = 0;
  // The manifest that the shard's record carries, verified. kNotFound, kCorrupt.
  virtual Task<Result<Manifest>> ReadManifest(StripeId stripe) = 0;

  virtual SegmentLogStats stats() const = 0;

  // Commits metadata and stops. No call may be in flight or follow. Must be awaited before
  // destruction, except after a simulated crash.
  virtual Task<Status> Stop() = 0;
};

}  // namespace cairn::kv
