// What the map asks of a home: to give the stripes of lost and draining targets other ones.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "kvstore/control/cluster_map.h"
#include "kvstore/control/node_report.h"
#include "kvstore/node/repairer.h"

namespace cairn::kv {

// Starts passes of repair, one after another, and knows which targets they have vacated. Loop
// thread only. All references must outlive it.
class Duties {
 public:
  // `bytes_per_second`: of a pass, read and written; 0: no limit.
  Duties(Clock& clock, NodeId self, uint64_t bytes_per_second)
      : clock_(clock), self_(self), bytes_per_second_(bytes_per_second) {}

  // Call it every second or so. A lost target is vacated when a whole pass, begun when it was lost
  // and these groups were here, restored every shard that can be.
  void Attend(const ClusterMap& map, Repairer& repairer);
  std::vector<NodeWork::Vacated> vacated() const;

 private:
  struct Pass {
    uint64_t epoch = 0;  // Of the map under which it began; 0: none is running.
    uint64_t passes = 0;  // Finished before it.
    std::vector<TargetId> targets;
  };

  // The epoch from which on a pass counts for the target.
  uint64_t NeededSince(const ClusterMap& map, TargetId target) const;
  void Finish(const Repairer& repairer);

  Clock& clock_;
  const NodeId self_;
  const uint64_t bytes_per_second_;
  Pass pass_;
  Instant not_before_;
  std::map<TargetId, uint64_t> done_;  // The epoch of the last pass that left nothing there.
};

}  // namespace cairn::kv
