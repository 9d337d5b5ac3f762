// Reads one block of a stripe into the caller's memory, rebuilding what is missing or damaged.
#pragma once

#include "kvstore/async/semaphore.h"
#include "kvstore/client/buffer_pool.h"
#include "kvstore/client/run_cache.h"
#include "kvstore/client/store_stats.h"
#include "kvstore/client/stripe_plan.h"
#include "kvstore/client/target_set.h"
#include "kvstore/io/workers.h"

namespace cairn::kv {

struct ReaderLimits {
  uint32_t reads_in_flight_max = 256;       // Shard reads at once, over all targets.
  uint64_t copy_bytes_max = 72 * kMiB;      // For callers' memory that is not aligned.
  uint64_t rebuild_bytes_max = 128 * kMiB;  // For survivors of degraded reads.
};

// Loop thread only. Everything passed in must outlive it.
class StripeReader {
 public:
  StripeReader(Loop& loop, Clock& clock, TargetSet& targets, StoreStats& stats,
               ReaderLimits limits);

  // Fills the first `size of the block` bytes of `into`, exact, or fails: kNotFound (the shards are
  // gone: evicted), kCorrupt (more than parity can replace is damaged for good), kUnavailable (more
  // than that is damaged or cannot be read now), kDeadline.
  // No I/O begins after the deadline; what is in flight then is awaited, since it lands in `into`.
  // `stripe` is held until the task is done; `into` is at least the block's size.
  Task<Status> ReadBlock(KnownStripePtr stripe, uint32_t block, MutableByteSpan into,
                         Instant deadline);

  // For whoever reads into memory of the store first. See BufferPool::Take.
  BufferPool& copies() { return copies_; }

  uint64_t memory_bytes() const { return copies_.memory_bytes() + rebuilds_.memory_bytes(); }

 private:
  // One block on its way: `memory` is aligned and holds whole sectors.
  struct Reading {
    const Manifest& manifest;
    const ManifestBlock& block;
    BlockPlan plan;
    MutableByteSpan memory;
    Instant deadline;
    std::vector<Status> outcomes;  // Of each piece.
  };
  // Bytes `range` of one shard, in somebody's memory.
  struct Survivor {
    ShardIndex shard;
    ByteSpan bytes;
  };

  Task<Status> ReadAligned(Reading& reading);
  Task<Status> ReadPiece(const Reading& reading, size_t piece);
  // Rebuilds the pieces whose outcome is not ok from the same range of other shards.
  Task<Status> Rebuild(Reading& reading);
  // What to say then. kCorrupt: whole shards must tell whether it is so for good.
  Status TooFew(const Reading& reading) const;
  Task<void> GatherSurvivors(const Reading& reading, ShardRange range, MutableByteSpan scratch,
                             std::vector<Survivor>& survivors);
  // The same from whole shards, each verified by its own record: finds a damaged survivor.
  Task<Status> RebuildCarefully(Reading& reading);
  Task<Status> ReadShard(SegmentLog::Range range, TargetId target);
  Task<Status> VerifyShard(StripeId stripe, ShardIndex shard, TargetId target,
                           MutableByteSpan into);
  // Decodes the failed pieces out of survivors of `range` into reading.memory; false when too few.
  bool Decode(Reading& reading, ShardRange range, const std::vector<Survivor>& survivors,
              MutableByteSpan scratch);
  bool PieceIsRight(const Reading& reading, size_t piece) const;
  void Count(const Status& outcome);

  Clock& clock_;
  TargetSet& targets_;
  StoreStats& stats_;
  Semaphore reads_;
  BufferPool copies_;
  BufferPool rebuilds_;
};

}  // namespace cairn::kv
