// Keeps namespaces within their quotas, and takes away what is left of deleted ones: in bounded
// steps, so that the loop serves others in between.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "kvstore/async/event.h"
#include "kvstore/base/log.h"
#include "kvstore/client/home_index.h"
#include "kvstore/client/space_ledger.h"
#include "kvstore/client/space_registry.h"

namespace cairn::kv {

// Loop thread only.
class SpaceSweeper {
 public:
  // All must outlive it.
  struct Parts {
    Loop& loop;
    Clock& clock;
    Log& log;
    const Placement& placement;
    HomeIndex& index;
    const SpaceRegistry& registry;
    SpaceLedger& ledger;
    StoreStats& stats;
  };
  explicit SpaceSweeper(Parts parts);

  // Counts what is filed on the targets: once, when the store opens.
  Task<Status> CountAll();

  // Reserves `payload` bytes of the quota (0: none), evicting the namespace's own oldest stripes
  // when it is at it. kNoSpace when they never fit; kOverloaded when what is there is leased or
  // kept. Each success wants one GiveBack, after the stripe was published or has failed.
  Task<Status> TakeRoom(NamespaceId space, uint64_t quota, uint64_t payload);
  void GiveBack(NamespaceId space, uint64_t payload);

  // One step of the removal of deleted namespaces: looks at 16,384 stripes at most, and removes 256
  // at most. Cheap when there is nothing to do. Goes on where the last call ended.
  Task<void> SweepDeleted();
  // A namespace was buried: SweepDeleted has work.
  void NoteDeletion() {
    dirty_ = true;
    pass_is_whole_ = false;
  }
  bool sweeping() const { return dirty_; }

  uint64_t quota_evictions() const { return quota_evictions_; }

 private:
  struct Candidate {
    StripeId stripe;
    uint32_t last_access = 0;
    uint32_t position = 0;
  };
  struct Eviction {
    std::vector<Candidate> coldest;  // The coldest is the last.
    std::shared_ptr<Event> running;  // Set when the eviction in progress ends.
  };

  // What is too much by, were so much payload added; 0: it fits.
  uint64_t Lacking(NamespaceId space, uint64_t quota, uint64_t payload);
  bool Fits(NamespaceId space, uint64_t quota, uint64_t payload) {
    return Lacking(space, quota, payload) == 0;
  }
  Task<void> Evict(NamespaceId space, uint64_t quota, uint64_t payload);
  // Removes some of the coldest, of about so many bytes; false when none could be.
  Task<bool> EvictSome(Eviction& eviction, uint64_t bytes);
  Task<void> Collect(NamespaceId space, Eviction& eviction);
  Task<bool> RemoveOne(StripeId stripe, MissReason reason);
  // Null when there are no more.
  TargetPort* PortAt(size_t place) const;
  // False for one that was looked at on an earlier target, or whose home is elsewhere.
  bool IsNew(size_t place, StripeId stripe) const;
  Task<void> Pause();

  Parts parts_;
  std::map<NamespaceId, Eviction> evictions_;
  std::shared_ptr<Event> given_back_;  // Set by the next GiveBack.
  uint64_t quota_evictions_ = 0;

  // Of SweepDeleted: a pass over all targets.
  bool dirty_ = true;
  bool pass_found_ = false;
  bool pass_is_whole_ = false;  // No deletion since it began.
  size_t place_ = 0;
  std::optional<StripeId> after_;
};

}  // namespace cairn::kv
