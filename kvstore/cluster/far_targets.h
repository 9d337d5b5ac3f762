// The targets of other nodes, as the map has them.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kvstore/control/cluster_map.h"
#include "kvstore/peer/peer_target.h"

namespace cairn::kv {

// Loop thread only. Both references must outlive it; Stop before it is destroyed.
class FarTargets {
 public:
  FarTargets(Loop& loop, PeerCaller& caller) : loop_(loop), caller_(caller) {}

  // Those of other nodes than `self` that are not lost: a lost one is as good as not there.
  std::vector<TargetPort*> Use(const ClusterMap& map, NodeId self);
  // No call may be in flight or follow.
  Task<void> Stop();

 private:
  Loop& loop_;
  PeerCaller& caller_;
  // Also those that were there once: calls to them may be on their way.
  std::map<std::pair<NodeId, TargetId>, std::unique_ptr<PeerTarget>> targets_;
};

}  // namespace cairn::kv
