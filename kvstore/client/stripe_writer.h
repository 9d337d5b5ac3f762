// Writes one stripe: parity, all shards at once, then publication. Commit first, publish second.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kvstore/async/gate.h"
#include "kvstore/base/random.h"
#include "kvstore/client/block_store.h"
#include "kvstore/client/buffer_pool.h"
#include "kvstore/client/pace.h"
#include "kvstore/client/placement.h"
#include "kvstore/client/stripe_index.h"
#include "kvstore/client/store_stats.h"
#include "kvstore/client/stripe_plan.h"
#include "kvstore/client/target_set.h"
#include "kvstore/io/workers.h"

namespace cairn::kv {

struct WriterParts {
  Loop& loop;
  Clock& clock;
  Workers& workers;
  Random& random;
  TargetSet& targets;
  Placement& placement;
  StripeIndex& index;
  SpaceKeeper& keeper;
  StoreStats& stats;
  PayloadMemory* network = nullptr;  // See BufferPool.
};

// What is written, besides its bytes.
struct StripeOrder {
  NamespaceId space;
  RunId run;
  uint32_t position = 0;    // Of the first block in its chain.
  uint8_t data_shards = 0;  // At most.
  uint8_t parity_shards = 0;
  Retention retention;
  uint32_t keep_until = 0;  // Seconds since 1970; 0: no promise.
  Ack ack = Ack::kCached;
  std::vector<BlockWrite> blocks;  // At least one; their memory is the caller's.
};

// A put waits for its targets, and in a cluster one sick node has a shard of nearly every stripe.
// So what is given to slow targets (pace.h) lies in memory of the store there, and the stripe is
// published without them: at most half of the parity, since such a target counts among those that
// may fail. Their appends go on; a shard that does not arrive is restored as any that is lacking.
// Until it has come, whoever puts the same blocks again may store them twice.
//
// Loop thread only. What the parts refer to must outlive it.
class StripeWriter {
 public:
  // `buffer_bytes_max` bounds parity and copies; `shard_size_max` is what a segment can take.
  StripeWriter(WriterParts parts, PaceOptions pace, uint64_t buffer_bytes_max,
               uint64_t shard_size_max);

  // The payload that a stripe of this shape may have, so that it fits segments and buffers.
  uint64_t PayloadMax(uint8_t data_shards, uint8_t parity_shards) const;

  // Ok: on all its targets, or (when some failed or are late) on at least k' + 1 of them, and
  // published.
  // kNoSpace, kOverloaded (space does not come fast enough), kInvalid: nothing of it is visible.
  // kConflict: so, since another node stored all its blocks first: they are there.
  // kUnavailable: so, or the index could not say whether it filed the stripe.
  Task<Status> Write(StripeOrder order);

  // Stripes that are written but not yet published: not garbage.
  bool IsInFlight(StripeId stripe) const;

  // Resolves when no shard is on its way. No call may be in flight or follow.
  Task<void> Stop() { return appends_.Close(); }

  const Pace& pace() const { return pace_; }  // Of appends.
  uint64_t memory_bytes() const { return buffers_.memory_bytes(); }

 private:
  // The shards of one stripe on their way: shared by the put and by each of its appends.
  struct Appending;

  Result<Manifest> Plan(const StripeOrder& order, StripeLayout& layout);
  // By shard: it is not waited for, as its target is slow.
  std::vector<bool> FindSlow(const Manifest& manifest) const;
  // Copies, parity and all checksums: the heavy part, on a worker when it is large.
  static void Fill(const StripeOrder& order, const StripeLayout& layout,
                   const std::vector<ShardSource>& sources, Appending& appending);
  Task<Status> WriteOnce(const StripeOrder& order);
  Task<Status> Commit(const StripeOrder& order, std::shared_ptr<Appending> appending);
  Task<Status> Publish(const StripeOrder& order, const Manifest& manifest);
  // Fails when too few are stored.
  Task<Status> AppendAll(std::shared_ptr<Appending> appending);
  Task<void> AppendOne(std::shared_ptr<Appending> appending, uint8_t shard);
  Task<void> DropShards(const Manifest& manifest);
  Task<Status> SyncAll(const Appending& appending);

  WriterParts parts_;
  const uint64_t shard_size_max_;
  Pace pace_;
  BufferPool buffers_;
  std::vector<StripeId> in_flight_;
  Gate appends_;
};

}  // namespace cairn::kv
