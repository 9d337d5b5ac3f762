// Reads one block of a stripe into the caller's memory, rebuilding what is missing or damaged.
#pragma once

#include <memory>
#include <vector>

#include "kvstore/async/gate.h"
#include "kvstore/async/semaphore.h"
#include "kvstore/client/buffer_pool.h"
#include "kvstore/client/read_pace.h"
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
  // Hedged reads: see StripeReader. 0: none.
  uint32_t hedge_percent = 10;  // Bytes read in addition, at most, of the bytes asked for.
  PaceOptions pace = {};
  // False: every read lands in memory of the store and is copied, so that each may be hedged.
  bool land_in_place = true;
};

// Reads land in the caller's memory, and a task cannot end while the device may still write there.
// So a read of a target that is expected to be late (read_pace.h) lands in memory of the store
// instead: once it is late the block is rebuilt beside it, and the first exact result wins. What
// loses is left to end alone, in memory that nobody looks at.
//
// Loop thread only. Everything passed in must outlive it.
class StripeReader {
 public:
  StripeReader(Loop& loop, Clock& clock, TargetSet& targets, StoreStats& stats,
               ReaderLimits limits);

  // Fills the first `size of the block` bytes of `into`, exact, or fails: kNotFound (the shards are
  // gone: evicted), kCorrupt (more than parity can replace is damaged for good), kUnavailable (more
  // than that is damaged or cannot be read now), kDeadline.
  // No I/O begins after the deadline; what is in flight into `into` then is awaited.
  // `into` is at least the block's size, and is not written to after the task is done.
  Task<Status> ReadBlock(KnownStripePtr stripe, uint32_t block, MutableByteSpan into,
                         Instant deadline);

  // Resolves when no read that lost a race is left. No call may be in flight or follow.
  Task<void> Stop() { return stragglers_.Close(); }

  // For whoever restores whole shards. See BufferPool::Take.
  BufferPool& rebuilds() { return rebuilds_; }

  uint64_t memory_bytes() const { return copies_.memory_bytes() + rebuilds_.memory_bytes(); }

 private:
  // One block on its way: `memory` is aligned and holds whole sectors.
  struct Reading {
    const Manifest& manifest;
    const ManifestBlock& block;
    BlockPlan plan;
    MutableByteSpan memory;   // Where pieces land.
    MutableByteSpan rebuilt;  // Where those that are rebuilt go: the same, or beside it.
    Instant deadline;
    std::vector<Status> outcomes;  // Of each piece.
  };
  struct Landing;  // A read into memory of the store, which may outlive its call.
  // Bytes `range` of one shard, in somebody's memory.
  struct Survivor {
    ShardIndex shard;
    ByteSpan bytes;
  };

  bool LandsInPlace(const Reading& reading, MutableByteSpan into) const;
  Task<Status> ReadInPlace(Reading& reading);
  Task<Status> ReadApart(KnownStripePtr stripe, Reading reading, MutableByteSpan into);
  Task<void> LandPiece(std::shared_ptr<Landing> landing, size_t piece);
  // Waits for all pieces, or for a rebuild that is sooner, or for the deadline.
  Task<void> Race(std::shared_ptr<Landing> landing);
  bool MayHedge(const Landing& landing);
  Task<void> Hedge(std::shared_ptr<Landing> landing);
  // Makes a block of pieces that have all come or failed, rebuilding those.
  Task<Status> Complete(Reading& reading);
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

  Loop& loop_;
  Clock& clock_;
  TargetSet& targets_;
  StoreStats& stats_;
  const ReaderLimits limits_;
  ReadPace pace_;
  HedgeBudget budget_;
  Semaphore reads_;
  BufferPool copies_;
  BufferPool rebuilds_;
  Gate stragglers_;
};

}  // namespace cairn::kv
