// Drops what is filed here of index groups that other targets keep now: it would grow stale, and
// could be taken for news when the group comes back.
#pragma once

#include <memory>
#include <vector>

#include "kvstore/async/event.h"
#include "kvstore/base/log.h"
#include "kvstore/cluster/node_map.h"
#include "kvstore/node/index_view.h"

namespace cairn::kv {

// Loop thread only. All references must outlive it.
class FormerReplicas {
 public:
  FormerReplicas(NodeMap& map, Log& log, const LocalTargets& own)
      : map_(map), log_(log), own_(own) {}

  // Call it every second or so. Looks at all that is filed here once after each change of who keeps
  // the groups; one that still fills a replica is left alone. Ends early when `stopping` is set.
  Task<void> Attend(const Event& stopping);

 private:
  // By the newest map.
  bool IsFormer(StripeId stripe, TargetId target) const;
  Task<Status> Drop(LocalTarget& target, StripeId stripe, const Event& stopping,
                    uint64_t& dropped);

  NodeMap& map_;
  Log& log_;
  const LocalTargets& own_;
  std::vector<Group> seen_;
};

}  // namespace cairn::kv
