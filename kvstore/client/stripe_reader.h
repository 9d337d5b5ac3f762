// Reads one block of a stripe into the caller's memory, rebuilding what is missing or damaged.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kvstore/async/gate.h"
#include "kvstore/async/semaphore.h"
#include "kvstore/client/buffer_pool.h"
#include "kvstore/client/pace.h"
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
  // Bytes read in addition, at most, of the bytes asked for; going round slow targets, while they
  // are few, is beside it.
  uint32_t hedge_percent = 10;
  PaceOptions pace = {};
  // False: every read lands in memory of the store and is copied, so that each may be hedged.
  bool land_in_place = true;
};

struct ReaderParts {
  Loop& loop;
  Clock& clock;
  Workers& workers;
  TargetSet& targets;
  StoreStats& stats;
  PayloadMemory* network = nullptr;  // See BufferPool.
};

// Reads land in the caller's memory, and a task cannot end while the device may still write there.
// So a read of a target that is expected to be late (pace.h) lands in memory of the store
// instead: once it is late the block is rebuilt beside it, and the first exact result wins. What
// loses is left to end alone, in memory that nobody looks at.
//
// To rebuild a small block, k' times its bytes are read. So blocks of a stripe that lacks shards,
// asked for in the same turn of the loop, are read together where that is less: whole ranges of k'
// shards, once, from which all of them are copied.
//
// Loop thread only. Everything passed in must outlive it.
class StripeReader {
 public:
  StripeReader(ReaderParts parts, ReaderLimits limits);

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

  const Pace& pace() const { return pace_; }  // Of reads.
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
  struct Joint;    // Blocks of one stripe that are read together.
  // Who finds out whether a piece is right: its target, or who then verifies the whole block.
  enum class PieceCheck { kByTarget, kWithBlock };
  // Bytes `range` of one shard, in somebody's memory.
  struct Survivor {
    ShardIndex shard;
    ByteSpan bytes;
  };
  // The same range of some shards, and which shards need not be asked for it (again).
  struct Survivors {
    ShardRange range;
    std::vector<Survivor> found;
    std::vector<bool> tried;
  };

  bool LandsInPlace(const Reading& reading, MutableByteSpan into) const;
  Task<Status> ReadInPlace(Reading& reading);
  Task<Status> ReadPatiently(Reading& reading);
  // How long a piece is waited for where another read of its memory cannot run beside it.
  Nanos PatienceWith(const Piece& piece) const;
  // Of pieces that are rebuilt, what is read for it.
  static uint64_t RebuildBytes(const Manifest& manifest, std::span<const Piece> pieces);
  Task<Status> ReadApart(KnownStripePtr stripe, Reading reading, MutableByteSpan into);
  Task<void> LandPiece(std::shared_ptr<Landing> landing, size_t piece);
  // Waits for all pieces, or for a rebuild that is sooner, or for the deadline.
  Task<void> Race(std::shared_ptr<Landing> landing);
  bool MayHedge(const Landing& landing);
  Task<void> Hedge(std::shared_ptr<Landing> landing);
  // Makes a block of pieces that have all come or failed, rebuilding those.
  Task<Status> Complete(Reading& reading);
  Task<Status> ReadPiece(const Reading& reading, size_t piece, PieceCheck check, Nanos patience);
  // Those that came and do not have their checksum fail.
  void FailDamaged(Reading& reading);
  // Rebuilds the pieces whose outcome is not ok from the same range of other shards.
  Task<Status> Rebuild(Reading& reading);
  // What to say then. kCorrupt: whole shards must tell whether it is so for good.
  Status TooFew(const Reading& reading) const;
  Survivors KnownSurvivors(const Reading& reading, ShardRange range) const;
  std::vector<uint8_t> BySpeed(const Manifest& manifest) const;
  // Reads until there are enough or no more; shard i at i times the range's size in `scratch`.
  Task<void> GatherSurvivors(const Manifest& manifest, Instant deadline, MutableByteSpan scratch,
                             Survivors& survivors);
  // The same from whole shards, each verified by its own record: finds a damaged survivor.
  Task<Status> RebuildCarefully(Reading& reading);
  Task<Status> ReadShard(SegmentLog::Range range, TargetId target);
  Task<Status> VerifyShard(StripeId stripe, ShardIndex shard, TargetId target,
                           MutableByteSpan into);
  // Decodes the failed pieces into reading.rebuilt; false when the survivors are too few.
  static bool Decode(Reading& reading, const Survivors& survivors, MutableByteSpan scratch);
  static bool PieceIsRight(const Reading& reading, size_t piece);
  static bool RebuiltAreRight(const Reading& reading);

  // Reading together (joint_read.cc).
  bool LacksData(const Manifest& manifest) const;
  bool IsAtHand(const Manifest& manifest, uint8_t shard) const;
  // Waits for what else is asked of the stripe. False: the block is not there, read it alone.
  Task<bool> ReadJointly(KnownStripePtr stripe, const Reading& reading, MutableByteSpan into);
  Task<void> RunJoint(std::shared_ptr<Joint> joint);
  bool IsLess(const Joint& joint) const;
  uint64_t BytesAlone(const Manifest& manifest, const BlockPlan& plan) const;
  // Fills joint.buffer with joint.range of every data shard.
  Task<bool> ReadRange(Joint& joint);
  void Count(const Status& outcome);

  Loop& loop_;
  Clock& clock_;
  Workers& workers_;
  TargetSet& targets_;
  StoreStats& stats_;
  const ReaderLimits limits_;
  Pace pace_;
  HedgeBudget budget_;
  Semaphore reads_;
  BufferPool copies_;
  BufferPool rebuilds_;
  std::map<StripeId, std::shared_ptr<Joint>> joints_;  // That more blocks may join.
  Gate stragglers_;
};

}  // namespace cairn::kv
