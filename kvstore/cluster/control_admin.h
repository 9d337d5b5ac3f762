// What operators ask of the cluster, answered from this node's map and the control store.
#pragma once

#include <string>
#include <vector>

#include "kvstore/cluster/node_map.h"
#include "kvstore/control/cluster_admin.h"
#include "kvstore/control/control_keys.h"
#include "kvstore/control/control_store.h"
#include "kvstore/io/clock.h"

namespace cairn::kv {

struct ControlAdminOptions {
  std::string cluster;
  Nanos call_timeout = Seconds(2);  // Of all that one question asks of the control store.
};

// Loop thread only. All references must outlive it.
class ControlAdmin final : public ClusterAdmin {
 public:
  ControlAdmin(Clock& clock, ControlStore& control, const NodeMap& map,
               ControlAdminOptions options)
      : clock_(clock), control_(control), map_(map), options_(std::move(options)),
        keys_(options_.cluster) {}

  // Once it is known.
  void SetSelf(NodeId self) { self_ = self; }

  Task<Result<ClusterInfo>> DescribeCluster() override;
  Task<Status> DrainNode(std::string node, Draining wanted) override;
  Task<Status> DrainTarget(TargetId target, Draining wanted) override;

 private:
  // Adds what only the control store knows.
  Task<Status> AskControl(const ClusterMap* map, ClusterInfo& info);
  // Of a node that is in the map, or, to take a wish back, of one that was and has been drained.
  Task<Result<NodeId>> Find(std::string node, Draining wanted);
  // kNoNode when no node ever had the name.
  Task<Result<NodeId>> IdOfName(std::string name);
  // `unknown` when nobody has wished it.
  Task<Status> FindWish(std::string key, Status unknown);

  Clock& clock_;
  ControlStore& control_;
  const NodeMap& map_;
  const ControlAdminOptions options_;
  const ControlKeys keys_;
  NodeId self_;
};

}  // namespace cairn::kv
