// What people ask of a cluster, as one of its nodes sees it.
#pragma once

#include <map>
#include <string>

#include "kvstore/control/cluster_map.h"

namespace cairn::kv {

struct ClusterView {
  std::string name;  // Of the cluster.
  NodeId self;
  MemberState state = MemberState::kJoining;  // Of this node.
  uint64_t epoch = 0;                         // 0: there is no map yet.
  uint16_t protocol = 0;                      // The version of messages that all nodes speak.
  std::map<MemberState, uint64_t> nodes;
  std::map<MemberState, uint64_t> targets;
  uint64_t draining_targets = 0;
  uint64_t groups = 0;
  uint64_t groups_here = 0;      // Of which this node is the home.
  uint64_t groups_homeless = 0;  // Whose home does not live.
  uint64_t groups_filling = 0;   // Some replica lacks something yet.
  uint64_t targets_slow = 0;       // This node finds them so.
  struct SetAside {
    TargetId target;
    std::string node;  // Its name.
  };
  std::vector<SetAside> set_aside;  // While it coordinates: most do, so they hold no group.
  bool coordinates = false;
  bool holds_lease = false;

  // Empty when all runs can be served from here; else what is being waited for.
  std::string WhyNotReady() const;
};

// But for the name, and what is not in the map.
ClusterView ViewOf(const ClusterMap& map, NodeId self);
// "up", "suspect".
const char* NameOf(MemberState state);

}  // namespace cairn::kv
