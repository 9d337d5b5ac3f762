// Decides which targets are to be emptied, by whom, how fast, and when they may be forgotten. Pure.
//
// A target is vacated by the homes: each gives the stripes of its groups other targets for their
// shards there: rebuilt from parity when the target is lost, copied when it is draining. What
// comes first within that is the home's to say (it knows what is hot, and what expires soon).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "kvstore/control/cluster_map.h"

namespace cairn::kv {

// What one node has to do under one map.
struct RepairDuty {
  std::vector<TargetId> rebuild;  // Lost: their shards come from parity. Longest lost first.
  std::vector<TargetId> copy;     // Draining: read from themselves.
  std::vector<uint32_t> groups;   // Those whose home the node is; ascending.
  uint64_t bytes_per_second = 0;  // Read and written together. 0: nothing to do.
};

// `target_rate` is what repair may take of each target, in bytes a second: all of them together are
// shared out to the homes by their groups, so that no target sees more than that on average.
RepairDuty DutyOf(const ClusterMap& map, NodeId node, uint64_t target_rate);

// To where a shard goes whose target is lost or draining: `stripe` are all targets of the stripe,
// that one among them. The successor in the stripe set that is most like the stripe, so that the
// scatter width stays what it is; else the lightest target that fits. kNoTarget when there is none.
class Successors {
 public:
  // `map` must outlive this.
  explicit Successors(const ClusterMap& map);
  TargetId Of(std::span<const TargetId> stripe, TargetId leaving) const;

 private:
  bool Fits(TargetId candidate, std::span<const TargetId> stripe, TargetId leaving) const;
  TargetId InSets(std::span<const TargetId> stripe, TargetId leaving) const;

  const ClusterMap& map_;
  std::multimap<TargetId, const StripeSet*> sets_;  // By each of their targets.
};

// "When I had the map of this epoch, none of my groups had a stripe on that target any more."
struct VacatedReport {
  NodeId node;
  TargetId target;
  uint64_t epoch = 0;
  auto operator<=>(const VacatedReport&) const = default;
};

// Takes those lost targets out of the map that no home needs any more: each home has said so, under
// an epoch in which the target was lost already and the home had its present groups. Draining
// targets stay until their node no longer shows them and they are lost, too.
void ForgetVacated(MapContent& content, std::span<const VacatedReport> reports);

// Those lost and draining targets that may be taken away: no home needs them any more, by the same
// rule, no index group has a place there, and whoever got those places has filled them. Ascending.
std::vector<TargetId> VacatedTargets(const MapContent& content,
                                     std::span<const VacatedReport> reports);

}  // namespace cairn::kv
