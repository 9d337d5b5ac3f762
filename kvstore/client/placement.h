// Which targets keep the index of a run, and which take a new stripe.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kvstore/base/random.h"
#include "kvstore/client/target_port.h"

namespace cairn::kv {

// Loop thread only. Answers hold until the next await.
class Placement {
 public:
  virtual ~Placement() = default;

  // --- The index ---
  // The targets that may keep the run's index: the first kIndexReplicas should, and the others
  // stand in where some of these take nothing.
  virtual std::vector<TargetId> ReplicaOrder(const NamespaceId& space, const RunId& run) const = 0;
  // Of these the ones whose word counts: what a replica has that is only being filled may have been
  // removed while it was none.
  virtual std::vector<TargetId> Sources(const NamespaceId& space, const RunId& run) const {
    return ReplicaOrder(space, run);
  }
  // And those that are away now: all that may have filed some of the run.
  virtual std::vector<TargetId> Places(const NamespaceId& space, const RunId& run) const {
    return ReplicaOrder(space, run);
  }
  // Those places that have all of the run, also while they are away; all where none has. What only
  // others have filed may be withdrawn there, once one of these is home.
  virtual std::vector<TargetId> Filled(const NamespaceId& space, const RunId& run) const {
    return Places(space, run);
  }
  // Every target at hand whose replica may have filed the stripe.
  virtual std::span<TargetPort* const> FilersOf(const StripeId& stripe) const = 0;
  // The targets of this process: their replicas answer without a message.
  virtual std::span<TargetPort* const> NearTargets() const = 0;

  // --- Stripes ---
  // How many shards a stripe may have that is written now.
  virtual size_t width_max() const = 0;
  // Distinct targets that take writes, and may lose their shards one by one. Nothing when there
  // are fewer than `count`.
  virtual std::optional<std::vector<TargetId>> ChooseTargets(size_t count, Random& random) = 0;
  // One more for a stripe that lost a shard: none of `barred`. Nothing when there is none.
  virtual std::optional<TargetId> ChooseOther(std::span<const TargetId> barred,
                                              Random& random) = 0;
  // Whether the target is to be emptied: its shards go to others.
  virtual bool IsLeaving(TargetId) const { return false; }
  // Whether a stripe may be filed anew from its shards when the store opens, because a crash has
  // swallowed its record. Where other nodes write, shards without a record are garbage.
  virtual bool RecoversFromShards() const { return true; }
  // Every target at hand that may hold a shard of the stripe; `manifest` may be null.
  virtual std::vector<TargetPort*> HoldersOf(const Manifest* manifest) const = 0;
};

}  // namespace cairn::kv
