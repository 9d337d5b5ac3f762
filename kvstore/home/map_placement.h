// Placement by the cluster's map: an index group's three targets, and one stripe set for a stripe.
//
// A set is drawn by weight, twice, and the better one taken, by queue and free space: what a put
// costs does not grow with the cluster.
#pragma once

#include <memory>
#include <vector>

#include "kvstore/client/placement.h"
#include "kvstore/client/target_choice.h"
#include "kvstore/client/target_set.h"
#include "kvstore/control/cluster_map.h"

namespace cairn::kv {

// Loop thread only. `targets` and `random` must outlive it.
class MapPlacement final : public Placement {
 public:
  MapPlacement(NodeId self, const TargetSet& targets, Random& random,
               std::shared_ptr<const ClusterMap> map);

  // The map, or the targets at hand, have changed.
  void Use(std::shared_ptr<const ClusterMap> map);

  // Those that are away by the map are left out: what is filed meanwhile is as safe as what was
  // filed before, and they are given it when they are back (kvstore/cluster/replica_sync.h).
  std::vector<TargetId> ReplicaOrder(const NamespaceId& space, const RunId& run) const override;
  std::vector<TargetId> Sources(const NamespaceId& space, const RunId& run) const override;
  std::vector<TargetId> Places(const NamespaceId& space, const RunId& run) const override;
  std::vector<TargetId> Filled(const NamespaceId& space, const RunId& run) const override;
  std::span<TargetPort* const> FilersOf(const StripeId& stripe) const override;
  std::span<TargetPort* const> NearTargets() const override { return near_; }
  // As wide as the widest of all sets, or of some where there are many.
  size_t width_max() const override;
  std::optional<std::vector<TargetId>> ChooseTargets(size_t count, Random& random) override;
  // In no failure domain of the others that are at hand.
  std::optional<TargetId> ChooseOther(std::span<const TargetId> barred, Random& random) override;
  bool IsLeaving(TargetId id) const override;
  bool RecoversFromShards() const override { return false; }
  std::vector<TargetPort*> HoldersOf(const Manifest* manifest) const override;

 private:
  bool IsAway(TargetId id) const;
  // The targets of the set that take writes now.
  std::vector<TargetState> UsableOf(const StripeSet& set) const;

  const NodeId self_;
  const TargetSet& targets_;
  Random& random_;  // For samples of sets.
  TargetChooser chooser_;
  std::shared_ptr<const ClusterMap> map_;
  std::vector<TargetPort*> near_;
  std::vector<std::vector<TargetPort*>> filers_;  // Of each group.
};

}  // namespace cairn::kv
