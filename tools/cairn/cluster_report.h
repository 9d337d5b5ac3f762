// What `cairn cluster` tells of a cluster: text, JSON, and what needs a person. Pure.
#pragma once

#include <string>
#include <vector>

#include "kvstore/control/cluster_admin.h"
#include "tools/cairn/format.h"

namespace cairn::tools {

// The targets of one node together.
struct NodeTargets {
  uint32_t count = 0;
  uint32_t draining = 0;
  uint32_t vacated = 0;
  uint32_t groups = 0;
  uint64_t capacity_bytes = 0;
  uint64_t free_bytes = 0;

  // The node is drained, and can be taken away.
  bool AllVacated() const { return vacated == count; }
};
NodeTargets TargetsOf(const kv::ClusterInfo& cluster, kv::NodeId node);

// All that `cairn cluster` asks, in one go.
struct ClusterOverview {
  kv::ClusterInfo cluster;
  std::vector<kv::SpaceInfo> spaces;
};

// Empty when nothing needs a person. What somebody has drained may be away: that is what it is for.
std::vector<std::string> ClusterConcerns(const ClusterOverview& seen);
// Namespaces whose stripes are too wide for the nodes that are left: what is draining stays until
// another node joins. Empty when nothing is draining that is not drained yet.
std::vector<std::string> StuckDrains(const ClusterOverview& seen);
// What has been emptied and waits to be taken away.
std::vector<std::string> ClusterNews(const kv::ClusterInfo& cluster);

// `address`: of the node that was asked.
std::string ClusterText(const ClusterOverview& seen, const std::string& address);
std::string ClusterTargetsText(const kv::ClusterInfo& cluster);
Json ClusterJson(const ClusterOverview& seen, const std::string& address);

// "node-3"; "node 7" for one that is not in the map.
std::string NodeNameOf(const kv::ClusterInfo& cluster, kv::NodeId id);

}  // namespace cairn::tools
