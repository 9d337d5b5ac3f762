// The index as a client sees it: publishes to the replicas of a run, reads runs, remembers them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kvstore/base/log.h"
#include "kvstore/client/run_cache.h"
#include "kvstore/client/store_stats.h"
#include "kvstore/client/target_set.h"

namespace cairn::kv {

// Loop thread only. Everything passed in must outlive it.
class IndexClient {
 public:
  IndexClient(Clock& clock, TargetSet& targets, StoreStats& stats, uint64_t cache_bytes_max);

  // Files the stripe with the replicas of its run: ok once 2 of them have it (or all, where there
  // are fewer targets). On failure it is withdrawn again as far as possible.
  Task<Status> Publish(IndexedStripe stripe, Durability durability);

  // The run as known to its replicas. Asks one replica, and the others when that one does not show
  // every wanted block as usable. The pointer holds until the next await. Fails with kUnavailable
  // when no replica answers.
  Task<Result<KnownRun*>> Load(RunKey key, std::vector<BlockId> wanted);

  // Whether a block of this stripe may be served: not gone, not expired, enough shards at hand.
  MissReason WhyNot(const KnownStripe& stripe) const;
  // The first place of the block that may be served; otherwise null and the reason.
  struct Answer {
    const KnownRun::Place* place = nullptr;
    MissReason reason = MissReason::kAbsent;
  };
  Answer Find(const KnownRun& run, const NamespaceId& space, BlockId id) const;

  // A hit: moves recency and, by class, expiry.
  void Touch(KnownStripe& stripe);

  // Takes the stripe out of every replica, then its shards off every target, and remembers why.
  // Reads in flight end with exact bytes or a miss.
  Task<void> Remove(StripeName name, MissReason reason);

  // False while replicas may miss manifests that they should have (a target was replaced, or a
  // publication had to go elsewhere): then a miss is believed only after asking every target.
  bool settled() const { return settled_; }
  void set_settled(bool settled) { settled_ = settled; }

  uint64_t memory_bytes() const;

 private:
  struct Loading {
    uint32_t readers = 0;
    uint64_t changes = 0;  // Publications and removals since the first of these readers began.
  };
  struct Gone {
    uint64_t fingerprint = 0;
    MissReason reason = MissReason::kNone;
  };

  Task<Result<KnownRun>> Read(RunKey key, std::vector<BlockId> wanted);
  bool AllUsable(const KnownRun& run, const std::vector<BlockId>& wanted) const;
  void NoteChange(const RunKey& key);
  Gone& GoneSlot(const NamespaceId& space, BlockId id);
  void RememberGone(const KnownRun& run, StripeName name, MissReason reason);

  Clock& clock_;
  TargetSet& targets_;
  StoreStats& stats_;
  RunCache cache_;
  std::map<RunKey, Loading> loading_;
  std::vector<Gone> gone_;  // A bounded memory of what was evicted or expired, by fingerprint.
  bool settled_ = true;
};

}  // namespace cairn::kv
