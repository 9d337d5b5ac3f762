// Keeps free segments on every target: expired stripes first, then the least recently used.
// How it chooses is in kvstore/reclaim; this looks, in steps of bounded length, and carries it out.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kvstore/async/event.h"
#include "kvstore/base/log.h"
#include "kvstore/client/stripe_index.h"
#include "kvstore/client/stripe_writer.h"
#include "kvstore/node/index_view.h"
#include "kvstore/reclaim/reclaim_plan.h"

namespace cairn::kv {

struct ReclaimerOptions {
  // The watermark, of each target. At least 2 segments: one for moves, one for puts.
  uint32_t free_segments_min_percent = 1;
  // Bytes rewritten, of bytes put: of all targets that share stripes.
  uint32_t move_percent_max = 30;
  // How long a shard may be here before its stripe is published, where other nodes write stripes:
  // what is in no index for so long is garbage. 0: only this process writes.
  Nanos unpublished_age = {};
};

// Loop thread only. One reclaim at a time; who asks meanwhile waits for it.
class Reclaimer final : public SpaceKeeper {
 public:
  // All must outlive it.
  struct Parts {
    Loop& loop;
    Clock& clock;
    Log& log;
    const LocalTargets& targets;
  };
  Reclaimer(Parts parts, ReclaimerOptions options);
  // Before the first call of any other method.
  void Use(StripeIndex& index, const StripeWriter& writer, StoreStats& stats);

  Task<Status> MakeRoom(uint64_t bytes) override;
  // Reclaims where less is free than the watermark asks for.
  Task<void> RunIfLow();
  // Removes stripes whose time is over, of one target's replica: at most 256, and looks at 65,536
  // at most. Where there are as many, the next targets follow, 16 in all.
  Task<void> PurgeExpired();
  // Drops shards that no index knows and nobody is putting: left over by a crash. What nobody can
  // be asked about is kept.
  Task<void> ReapOrphans();
  // Stripes that lost a damaged shard to reclaim since the last call: to be restored.
  std::vector<StripeId> TakeDamaged() { return std::exchange(damaged_, {}); }
  // What no call may start after; wait for those in flight.
  void Stop() { stopping_ = true; }

 private:
  // A sealed segment that may be freed, with the shards in it.
  struct Candidate {
    SegmentInfo segment;
    std::vector<StripeId> stripes = {};
    SegmentView view = {};  // Of the same shards, in the same order.
  };

  uint64_t FreeWanted(const LocalTarget& target) const;
  Task<bool> ReclaimAll();
  // Whether a segment was freed.
  Task<bool> ReclaimTarget(LocalTarget& target, uint64_t segments_wanted,
                           uint64_t move_bytes_max);
  // Whether the shards of a stripe are on targets of this node: no other node has any. In a cluster
  // they are on as many nodes, and two targets of one node have nothing in common.
  bool TargetsShareStripes() const { return options_.unpublished_age.value == 0; }
  // Bytes that each of them may rewrite now: an equal part of what is left to all, as what the
  // first ones moved the last ones would have to evict.
  uint64_t MoveBudgetOf(std::span<const std::unique_ptr<LocalTarget>> sharers) const;
  std::vector<Candidate> Candidates(const LocalTarget& target);
  Task<void> CollectShards(const LocalTarget& target, std::vector<Candidate>& candidates);
  Task<void> LookUpStates(Candidate& candidate, size_t begin, size_t end);
  ShardView ViewOf(StripeId stripe, const StripeReport& report);
  Task<bool> IsHeld(StripeId stripe);
  // True once it was found in no index for options_.unpublished_age, and nobody here is putting it.
  bool IsGarbage(StripeId stripe, const StripeReport& report);
  Task<std::vector<StripeId>> GarbageOf(std::vector<StripeId> held);
  Task<bool> Execute(LocalTarget& target, const Candidate& candidate, SegmentReclaim reclaim);
  Task<bool> MoveAll(LocalTarget& target, const Candidate& candidate, SegmentReclaim& reclaim);
  Task<void> RemoveAll(std::vector<StripeId> stripes, MissReason reason);
  // False when the stripe cannot do without it: then nothing was done.
  Task<bool> DropDamaged(LocalTarget& target, StripeId stripe);
  // True when there is probably more.
  Task<bool> PurgeOneTarget();
  // Lets the loop serve others before the next step.
  Task<void> Pause();

  Parts parts_;
  const ReclaimerOptions options_;
  StripeIndex* index_ = nullptr;
  const StripeWriter* writer_ = nullptr;
  StoreStats* stats_ = nullptr;
  std::shared_ptr<Event> running_;  // Set when the reclaim in progress ends. Shared with waiters.
  std::map<TargetId, ReclaimPlanner> planners_;  // One, where targets share stripes.
  // Of this reclaim; bounded. Most stripes are on all targets.
  std::unordered_map<StripeId, ShardView, IdHash> views_;
  std::unordered_map<StripeId, Instant, IdHash> absent_since_;  // In no index; bounded.
  uint64_t rounds_ = 0;
  size_t purge_next_ = 0;
  std::vector<std::optional<StripeId>> purge_after_;  // Of each target, where to go on.
  std::vector<StripeId> damaged_;
  bool stopping_ = false;
};

}  // namespace cairn::kv
