// What every node runs: it is there under a lease, says what it has, and follows the cluster map.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kvstore/async/event.h"
#include "kvstore/async/gate.h"
#include "kvstore/base/log.h"
#include "kvstore/base/random.h"
#include "kvstore/control/map_store.h"
#include "kvstore/control/node_report.h"
#include "kvstore/io/clock.h"

namespace cairn::kv {

struct AgentOptions {
  std::string cluster;
  // Of this node; the id is drawn. The name is its identity: it has the same id in every life.
  NodeEntry self;
  Nanos lease_ttl = Seconds(10);  // Whole seconds, 3 at least.
  Nanos call_timeout = Seconds(2);
  Nanos report_interval = Seconds(5);  // At most so often is a changed report written.
};

// An outage of the control store stops changes only: the last map stays, and the node is what it
// was until its lease must be taken to have run out. Loop thread only; all references must outlive
// this. Stop before it is destroyed.
class Agent {
 public:
  using OnMap = std::function<void(std::shared_ptr<const ClusterMap>)>;

  // `random` makes retries of many nodes fall apart. `on_map` gets each map that is newer than the
  // one before; it must not wait.
  Agent(Loop& loop, Clock& clock, ControlStore& store, Random& random, Log& log,
        AgentOptions options, OnMap on_map);

  // Draws the node's id at its first start, and begins. Waits until `deadline` while another
  // process of this name still has its lease: kConflict after that.
  Task<Status> Start(Instant deadline);
  // Gives the lease back: others need not wait for it.
  Task<void> Stop();

  NodeId id() const { return options_.self.id; }
  std::shared_ptr<const ClusterMap> map() const { return map_; }  // Null before the first.

  // Whether the lease certainly lives, by this node's own clock (which may be a tenth of the lease
  // wrong over its length). While it does not, the node is no home and gives no leases: another
  // one may be home already.
  bool HoldsLease() const { return clock_.Now() < lease_until_; }
  Instant lease_until() const { return lease_until_; }

  // What the next report says.
  void SetTargets(std::vector<TargetReport> targets);
  void SetWork(NodeWork work);
  void SetUsage(UsageBySpace usage);
  // Nothing: this node does not know how fast the others are.
  void SetSlow(std::optional<SlowReport> slow);

 private:
  Task<Status> DrawId(Instant deadline);
  Task<Status> Register();
  Task<Status> RefreshLease();
  Task<Status> WriteReports();
  Task<void> KeepLease();
  Task<void> FollowMap();
  void TakeMap(std::shared_ptr<const ClusterMap> map);
  Task<void> Pause(Nanos most);
  Change PutUnderLease(std::string key, std::string value) const;
  std::string Encoded() const;
  Instant CallDeadline() const { return clock_.Now() + options_.call_timeout; }

  // Constant, but for the id.
  Clock& clock_;
  ControlStore& store_;
  Random& random_;
  Log& log_;
  AgentOptions options_;
  const ControlKeys keys_;
  const OnMap on_map_;

  NodeReport report_;
  NodeWork work_;
  UsageBySpace usage_;
  std::optional<SlowReport> slow_;
  // What lies in the control store under the lease, by key; empty: nothing does. Keys that are not
  // here: that is not known.
  std::map<std::string, std::string> written_;
  Instant reported_at_;
  NodeLeaseId lease_;
  bool registered_ = false;  // The report lies under `lease_`.
  Instant lease_until_;
  Instant refreshed_at_;
  std::shared_ptr<const ClusterMap> map_;  // Shared with calls that began under it.
  Event stopping_;
  Gate gate_;
};

}  // namespace cairn::kv
