// What operators ask of a cluster, at any one of its nodes: how it is, and that parts be emptied.
//
// Loop thread only. Implemented by a member (kvstore/cluster); a remote client asks over its
// connection.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvstore/async/task.h"
#include "kvstore/base/result.h"
#include "kvstore/control/cluster_map.h"
#include "kvstore/control/member_admin.h"

namespace cairn::kv {

struct ClusterTargetInfo {
  TargetId id;
  NodeId node;
  MemberState state = MemberState::kJoining;
  bool draining = false;
  uint8_t weight_percent = kWeightFull;
  uint64_t capacity_bytes = 0;
  uint64_t free_bytes = 0;  // As its node last said; 0 while it says nothing.
  uint32_t groups = 0;      // Index groups that have a place here.
  // Draining or lost, and nothing is left there: every home has looked, no index group has a place
  // here, and all of them are whole.
  bool vacated = false;
};

struct ClusterInfo {
  std::string name;
  NodeId self;         // Who tells it.
  NodeId coordinator;  // kNoNode: nobody, or that is not known.
  uint64_t epoch = 0;  // Of the map that it tells of; 0: there is none yet.
  uint32_t groups = 0;
  uint32_t groups_homeless = 0;  // Whose home does not live: their runs are not to be had.
  uint32_t groups_filling = 0;   // Some replica lacks something yet.
  // Not ok: the control store does not answer. Then who coordinates, what is free and what is
  // vacated are not known, and the map may be an old one.
  Status control;
  std::vector<NodeEntry> nodes;            // By id.
  std::vector<ClusterTargetInfo> targets;  // By slot.
};

class ClusterAdmin {
 public:
  virtual ~ClusterAdmin() = default;

  // Of the map that this node has. Ends soon also while the control store is away.
  virtual Task<Result<ClusterInfo>> DescribeCluster() = 0;

  // `node` is a name, or an id in digits. The coordinator sees it in its next step. kNotFound:
  // there is no such node in the cluster. kUnavailable: the control store does not answer; then it
  // may have heard or not, and to ask again does no harm.
  virtual Task<Status> DrainNode(std::string node, Draining wanted) = 0;
  virtual Task<Status> DrainTarget(TargetId target, Draining wanted) = 0;
};

}  // namespace cairn::kv
