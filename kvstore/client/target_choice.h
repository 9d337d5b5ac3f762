// Chooses the targets of a stripe and the index replicas of a run. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kvstore/base/random.h"
#include "kvstore/types/ids.h"

namespace cairn::kv {

struct TargetState {
  TargetId id;
  bool live = false;        // Takes writes: there, healthy.
  uint64_t free_bytes = 0;  // Or what reclaim could free soon.
  uint32_t queue = 0;       // Operations in flight.
};

// `count` distinct live targets: those with the shortest queues, among about equal ones those with
// the most room, so that all fill in step (decision 9). Nothing when fewer than `count` live.
std::optional<std::vector<TargetId>> ChooseTargets(std::span<const TargetState> targets,
                                                   size_t count, Random& random);

// All targets by descending rendezvous weight for the run: the first kIndexReplicas hold its index.
// A target that comes or goes moves only the runs that it gains or loses.
std::vector<TargetId> ReplicaOrder(const NamespaceId& space, const RunId& run,
                                   std::span<const TargetId> targets);

}  // namespace cairn::kv
