// What a client may ask of one target, near or far: its shards, and its replica of the index.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kvstore/index/index_replica.h"
#include "kvstore/segment/segment_log.h"

namespace cairn::kv {

// Loop thread only. Errors are those of SegmentLog and MetadataStore; memory and references passed
// in must live until the task is done.
class TargetPort {
 public:
  virtual ~TargetPort() = default;

  virtual TargetId id() const = 0;
  virtual uint64_t free_bytes() const = 0;
  virtual uint32_t operations_in_flight() const = 0;

  // --- Shards ---
  virtual Task<Status> Append(const Manifest& manifest, ShardIndex index,
                              ShardPayload payload) = 0;
  virtual Task<Status> Read(SegmentLog::Range range) = 0;
  virtual Task<Status> ReadVerified(StripeId stripe, ShardIndex index, MutableByteSpan into) = 0;
  // A hint without I/O: false when the target surely does not hold the shard.
  virtual bool MayHold(StripeId stripe, ShardIndex index) const = 0;
  // Asks the target itself. Ok: it holds the shard; kNotFound: it does not; else it did not say.
  virtual Task<Status> Holds(StripeId stripe, ShardIndex index) = 0;
  virtual Task<Status> Drop(StripeId stripe) = 0;
  // Makes every append, drop and publication done so far survive a power cut.
  virtual Task<Status> Sync() = 0;

  // --- The index replica ---
  virtual Task<Status> Publish(IndexedStripe stripe, Durability durability) = 0;
  virtual Task<Result<std::vector<IndexedStripe>>> LookUp(NamespaceId space, RunId run) = 0;
  // One stripe as it is filed here, however many its run has. kNotFound when it is not.
  virtual Task<Result<IndexedStripe>> ReadFiled(StripeId stripe) = 0;
  virtual Task<Status> Withdraw(StripeName name) = 0;
  // That the stripe was deleted, for targets that are away. Survives a power cut.
  virtual Task<Status> SaveRemoval(StripeId stripe) = 0;
  // A hint without I/O: false when the replica surely has not filed the stripe.
  virtual bool MayHaveFiled(StripeId stripe) const = 0;
  // A hit. Changes memory at once, and the metadata with the next checkpoint or SaveUse.
  virtual void Touch(StripeId stripe, const StripeUse& use) = 0;
  // What Touch changed of the stripe so far survives the process. Fine when it is not filed here.
  virtual Task<Status> SaveUse(StripeId stripe) = 0;
  // A hint without I/O: nothing when the replica has not filed the stripe.
  virtual std::optional<StripeState> StateOf(StripeId stripe) const = 0;
  // Under which run it is filed: one read. kNotFound when it is not filed here.
  virtual Task<Result<StripeName>> NameOf(StripeId stripe) = 0;
  // What is filed here, in pieces: at most `limit` behind `after`, in an order of its own. Stripes
  // that come or go meanwhile may be in it or not.
  struct Filed {
    StripeId stripe;
    StripeState state;
  };
  virtual Task<Result<std::vector<Filed>>> ListFiled(std::optional<StripeId> after,
                                                     size_t limit) = 0;

  // --- Namespaces, and the tombstones of deleted ones ---
  virtual Task<Status> SaveSpace(SpaceRecord record) = 0;
  virtual Task<Result<std::vector<SpaceRecord>>> ListSpaces() = 0;
};

// Makes room on full targets. Several calls may be in flight.
class SpaceKeeper {
 public:
  virtual ~SpaceKeeper() = default;
  // Frees space until `bytes` more fit on every live target. kNoSpace when nothing can be evicted.
  virtual Task<Status> MakeRoom(uint64_t bytes) = 0;
};

}  // namespace cairn::kv
