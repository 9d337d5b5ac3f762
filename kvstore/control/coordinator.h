// The one node that makes maps: elected in the control store, it runs the planners once a second.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "kvstore/async/event.h"
#include "kvstore/async/gate.h"
#include "kvstore/base/log.h"
#include "kvstore/base/random.h"
#include "kvstore/control/group_planner.h"
#include "kvstore/control/map_store.h"
#include "kvstore/control/membership.h"
#include "kvstore/control/set_planner.h"
#include "kvstore/control/slow_targets.h"
#include "kvstore/io/clock.h"

namespace cairn::kv {

struct CoordinatorOptions {
  std::string cluster;
  NodeId self;         // Who this is, for people.
  ClusterShape shape;  // Of a cluster that has no map yet; else the map's own counts.
  MembershipOptions membership = {};
  SetPlanOptions sets = {};
  GroupPlanOptions groups = {};
  SlowTargetOptions slow = {};
  Nanos interval = Seconds(1);   // Between two steps.
  Nanos lease_ttl = Seconds(5);  // Whole seconds: for so long nobody coordinates after a crash.
  Nanos call_timeout = Seconds(2);
  Nanos usage_interval = Seconds(10);  // Between two sums of what namespaces use.
};

struct CoordinatorStats {
  uint64_t elections_won = 0;
  uint64_t steps = 0;           // In which the planners ran.
  uint64_t steps_failed = 0;    // For the control store.
  uint64_t maps_published = 0;
  uint64_t stalls = 0;          // Steps after which nobody was blamed.
  bool breaker_open = false;    // In the last step.
};

// May run on every node. Each write is guarded by the election: once another one has been elected,
// nothing that this one still sends has any effect, however late it arrives. So its clock does
// not matter. Loop thread only; all references must outlive this. Stop before it is destroyed.
class Coordinator {
 public:
  Coordinator(Loop& loop, Clock& clock, ControlStore& store, Random& random, Log& log,
              CoordinatorOptions options);

  void Start();
  // Gives the election back, so that another one can be elected at once.
  Task<void> Stop();

  // As far as this one knows: it may have been deposed.
  bool leads() const { return guard_.has_value(); }
  const CoordinatorStats& stats() const { return stats_; }
  // Which are slow, and hold no part of the index. While it leads, from its first step on.
  std::set<TargetId> set_aside() const { return slow_ ? slow_->named() : std::set<TargetId>(); }

 private:
  Task<void> Run();
  Task<Status> Campaign();
  Task<Status> AwaitVacancy(int64_t revision);
  Task<Status> Step();
  Task<Status> RefreshLease();
  Task<Status> LoadMap();
  Task<Status> LoadSetAside();
  Task<Status> PublishSetAside();
  Task<Status> CommitGuarded(std::string key, std::string value);
  MapContent PlanNext(const Snapshot& snapshot);
  void TellSlow(const std::set<TargetId>& before);
  Task<Status> PublishUsage();
  void TellNews(const MembershipNews& news);
  void Depose();
  Instant CallDeadline() const { return clock_.Now() + options_.call_timeout; }

  // Constant.
  Clock& clock_;
  ControlStore& store_;
  Random& random_;
  Log& log_;
  const CoordinatorOptions options_;
  const ControlKeys keys_;

  NodeLeaseId lease_;
  Instant refreshed_at_;
  std::optional<Compare> guard_;            // Holds while this one is elected.
  std::optional<MapStore> maps_;            // While it leads, as the next five.
  std::optional<Membership> membership_;
  std::optional<SlowTargets> slow_;
  std::set<TargetId> set_aside_told_;       // As in the store.
  std::shared_ptr<const ClusterMap> map_;   // As in the store; null: to be loaded.
  bool at_rest_ = false;                    // The planners left it as it is, last time.
  Instant usage_at_;
  CoordinatorStats stats_;
  std::string last_news_;
  Event stopping_;
  Gate gate_;
};

}  // namespace cairn::kv
