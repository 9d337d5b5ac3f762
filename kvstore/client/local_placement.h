// Placement over the targets of one process: each may keep any part of the index, and any shard.
//
// Rendezvous hashing for the index, so that a target that comes or goes moves only what it gains or
// loses; by queue and room for shards (target_choice.h).
#pragma once

#include "kvstore/client/placement.h"
#include "kvstore/client/target_choice.h"
#include "kvstore/client/target_set.h"

namespace cairn::kv {

// `targets` must outlive it.
class LocalPlacement final : public Placement {
 public:
  explicit LocalPlacement(const TargetSet& targets) : targets_(targets) {}

  std::vector<TargetId> ReplicaOrder(const NamespaceId& space, const RunId& run) const override;
  std::span<TargetPort* const> FilersOf(const StripeId&) const override {
    return targets_.ports();
  }
  std::span<TargetPort* const> NearTargets() const override { return targets_.ports(); }
  size_t width_max() const override { return targets_.live_count(); }
  std::optional<std::vector<TargetId>> ChooseTargets(size_t count, Random& random) override;
  std::optional<TargetId> ChooseOther(std::span<const TargetId> barred, Random& random) override;
  std::vector<TargetPort*> HoldersOf(const Manifest*) const override { return targets_.ports(); }

 private:
  const TargetSet& targets_;
  TargetChooser chooser_;
};

}  // namespace cairn::kv
