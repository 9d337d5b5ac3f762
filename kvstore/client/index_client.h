// The index as a client sees it: publishes to the replicas of a run, reads runs, remembers them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kvstore/base/log.h"
#include "kvstore/client/lease_table.h"
#include "kvstore/client/run_cache.h"
#include "kvstore/client/space_ledger.h"
#include "kvstore/client/space_registry.h"
#include "kvstore/client/store_stats.h"
#include "kvstore/client/target_set.h"

namespace cairn::kv {

// Loop thread only. Everything passed in must outlive it.
class IndexClient {
 public:
  struct Parts {
    Clock& clock;
    TargetSet& targets;
    StoreStats& stats;
    LeaseTable& leases;
    const SpaceRegistry& spaces;
    SpaceLedger& ledger;
  };
  IndexClient(Parts parts, uint64_t cache_bytes_max);

  // Files the stripe with the replicas of its run: ok once 2 of them have it (or all, where there
  // are fewer targets). On failure, and when its namespace was deleted meanwhile (kNotFound), it is
  // withdrawn again as far as possible.
  Task<Status> Publish(IndexedStripe stripe, Durability durability);

  // Files a stripe that is filed already with a manifest of a higher generation. Ok once 2 of its
  // replicas (or all) have it; kNotFound when it is removed, or was meanwhile. On other failures it
  // is filed as before, or anew, with some of them.
  Task<Status> Republish(IndexedStripe stripe);

  // False when no replica of a target at hand has the stripe, or it is being removed.
  bool IsFiled(StripeId stripe) const;

  // The run as known to its replicas. Asks one replica, and the others when that one does not show
  // every wanted block as usable. `wanted` must live until the task is done. Fails with
  // kUnavailable when no replica answers.
  Task<Result<KnownRunPtr>> Load(RunKey key, std::span<const BlockId> wanted);
  // The same, asking every replica: what the first one knows may lie on targets that fail, and
  // there may be more of it.
  Task<Result<KnownRunPtr>> LoadAll(RunKey key);

  // Whether a block of this stripe may be served: not gone, not expired, enough shards at hand.
  MissReason WhyNot(const KnownStripe& stripe) const;
  // How many more shards of it may be lost.
  uint32_t Spare(const KnownStripe& stripe) const;
  // The first place of the block that may be served; otherwise null and the reason.
  struct Answer {
    const KnownRun::Place* place = nullptr;
    MissReason reason = MissReason::kAbsent;
  };
  Answer Find(const KnownRun& run, const NamespaceId& space, BlockId id) const;
  // The answers for `wanted`, in order, up to and with the first miss. Each stripe is judged once:
  // cheaper than Find for each. The places hold until the next await.
  std::vector<Answer> FindPrefix(const KnownRun& run, const NamespaceId& space,
                                 std::span<const BlockId> wanted) const;

  // A hit: moves recency and, by class, expiry.
  void Touch(KnownStripe& stripe);

  // Takes the stripe out of every replica, then its shards off every target, and remembers why.
  // Reads in flight end with exact bytes or a miss. kConflict: nothing was done, because the reason
  // is kEvicted and the stripe is leased. kUnavailable: a target that holds some of it did not take
  // the removal, and may bring the stripe back when the store is opened again.
  Task<Status> Remove(StripeName name, MissReason reason);

  // True while the stripe must not be evicted: it is leased, or under a keep_until. Expiry and
  // deletion go ahead all the same.
  bool IsHeld(StripeId stripe) const;
  // Promises to keep the stripe until then (seconds since 1970), on its replicas: survives a
  // restart. kOverloaded when the limits do not allow it; kNotFound when it is gone.
  Task<Status> Keep(KnownStripePtr stripe, uint32_t keep_until, KeepLimits limits);

  // What any replica knows of it, taken together; nothing when none has filed it. No I/O.
  std::optional<StripeState> StateOf(StripeId stripe) const;
  // Counts a filed stripe as stored: when the store opens, what it finds.
  void CountIn(StripeId stripe);

  // Called in each Remove, once no lookup shows the stripe any more.
  void set_on_removed(std::function<void(StripeId)> on_removed) {
    on_removed_ = std::move(on_removed);
  }

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

  class Judge;

  enum class Ask { kUntilFound, kAll };

  uint32_t NowSeconds() const { return static_cast<uint32_t>(clock_.UnixNow().value / 1000); }
  Task<Status> FileWithReplicas(const IndexedStripe& stripe, Durability durability);
  Task<Result<KnownRunPtr>> LoadAnew(RunKey key, std::span<const BlockId> wanted, Ask ask);
  Task<Result<KnownRun>> Read(RunKey key, std::span<const BlockId> wanted, Ask ask);
  bool AllUsable(const KnownRun& run, std::span<const BlockId> wanted) const;
  MissReason WhyNot(const KnownStripe& stripe, UnixMillis now) const;
  MissReason WhyUnknown(const KnownRun& run, const NamespaceId& space, BlockId id) const;
  // What is being removed, or was while somebody still had it at hand.
  MissReason WhyGone(const Manifest& manifest) const;
  void NoteChange(const RunKey& key);
  // Null when nothing is remembered of the block.
  const Gone* FindGone(const NamespaceId& space, BlockId id) const;
  void RememberGone(const KnownRun& run, StripeName name, MissReason reason);
  void ForgetGone(const Manifest& manifest);

  Clock& clock_;
  TargetSet& targets_;
  StoreStats& stats_;
  LeaseTable& leases_;
  const SpaceRegistry& spaces_;
  SpaceLedger& ledger_;
  RunCache cache_;
  std::map<RunKey, Loading> loading_;
  std::map<StripeId, MissReason> removing_;
  std::map<StripeId, bool> republishing_;  // Whether it was removed meanwhile.
  std::set<StripeId> publishing_;  // Not counted yet.
  std::vector<Gone> gone_;  // A bounded memory of what was evicted or expired, by fingerprint.
  bool settled_ = true;
  std::function<void(StripeId)> on_removed_;
};

}  // namespace cairn::kv
