// All that members and operators have told through the control store, read in one go.
#pragma once

#include <map>
#include <vector>

#include "kvstore/control/control_keys.h"
#include "kvstore/control/control_store.h"
#include "kvstore/control/group_planner.h"
#include "kvstore/control/membership.h"
#include "kvstore/control/repair_plan.h"
#include "kvstore/control/slow_targets.h"

namespace cairn::kv {

// Everything under ControlKeys::Members(), as the planners want it.
struct MemberReports {
  Observation seen;
  std::vector<VacatedReport> vacated;
  std::vector<FilledPlace> filled;
  std::vector<SlowReport> slow;
  std::map<TargetId, uint64_t> free_bytes;
};

// A report that cannot be read says nothing, so that its node is not heard of.
MemberReports ReadMemberReports(const Snapshot& snapshot, const ControlKeys& keys, Instant now);

}  // namespace cairn::kv
