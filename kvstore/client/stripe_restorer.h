// Gives a stripe back the shards that it has lost: rebuilt from the others, stored, and filed.
//
// A shard that is damaged, or missing on a target that serves, is written again on that target: the
// manifest stays as it is. A shard whose target is gone, or is to be emptied, goes to another one,
// and the stripe is filed anew with a manifest of the next generation (docs/decisions/0008).
#pragma once

#include <set>
#include <vector>

#include "kvstore/base/random.h"
#include "kvstore/client/buffer_pool.h"
#include "kvstore/client/placement.h"
#include "kvstore/client/filed_stripe.h"
#include "kvstore/client/stripe_index.h"
#include "kvstore/client/store_stats.h"
#include "kvstore/client/target_set.h"
#include "kvstore/io/workers.h"

namespace cairn::kv {

// What became of one stripe.
struct RestoreReport {
  uint32_t checked = 0;   // Shards looked for, or by Scrub: read whole.
  uint32_t damaged = 0;   // Of these, not as they should be.
  uint32_t restored = 0;
  uint32_t failed = 0;    // Shards that stay lost, for now or for good.
  uint32_t lost = 0;      // Of these: for good, as too few others are there to restore them from.
  uint32_t unknown = 0;   // Shards whose targets could not be asked.
  uint64_t bytes = 0;     // Read and written.
  Status status;          // Why some failed.
};

// Loop thread only. Everything in `parts` must outlive it. One call per stripe at a time: another
// one meanwhile does nothing, and fails.
class StripeRestorer {
 public:
  struct Parts {
    Workers& workers;
    Random& random;
    TargetSet& targets;
    Placement& placement;
    StripeIndex& index;
    SpaceKeeper& keeper;
    BufferPool& buffers;
    StoreStats& stats;
  };
  explicit StripeRestorer(Parts parts) : parts_(parts) {}

  // Reads and verifies the record of every shard, and restores those that are damaged or missing.
  // Where replicas are uneven, files the newest manifest with all of them.
  Task<RestoreReport> Scrub(FiledStripe filed);
  // The same without verifying: restores the shards that their targets say they do not hold.
  Task<RestoreReport> Restore(FiledStripe filed);

 private:
  struct Work;
  using Places = std::vector<bool>;  // By shard.

  enum class Check { kAll, kPresence };
  Task<RestoreReport> Attend(FiledStripe filed, Check check);
  Task<void> FindMissing(Work& work);
  // Shards that have nowhere to go stay as they are: nothing is read for them.
  void KeepStuck(Work& work);
  // Off the targets that it has left.
  Task<void> DropMoved(const Work& work);
  Task<void> Verify(Work& work);
  Task<void> RestoreBad(Work& work);
  // Reads k' verified shards; what turns out to be damaged is bad, too.
  Task<void> GatherWhole(Work& work, MutableByteSpan memory);
  // Where shard `place` goes: its own target, or one that holds none of the stripe.
  TargetPort* ChooseTarget(const Work& work, uint8_t place);
  Task<Status> Store(Work& work, uint8_t place, ByteSpan payload, TargetPort* port);

  Parts parts_;
  std::set<StripeId> at_work_;
};

}  // namespace cairn::kv
