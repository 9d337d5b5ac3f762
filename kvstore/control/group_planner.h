// Decides which targets hold each index group, and which of them is its home. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <span>

#include "kvstore/control/cluster_map.h"

namespace cairn::kv {

struct GroupPlanOptions {
  // At most this share of all groups is moved at a time only to even out.
  uint32_t moving_percent_max = 12;
};

// "Target has all of the group now."
struct FilledPlace {
  uint32_t group = 0;
  TargetId target;
  auto operator<=>(const FilledPlace&) const = default;
};

// Takes the marks off those places. What is not in the map, or not filling, does nothing.
void MarkFilled(MapContent& content, std::span<const FilledPlace> filled);

// Brings content.groups up to date with content.targets, for the epoch content.epoch.
//   - The place of a lost target goes to another one at once. So does that of a draining or a slow
//     one, but only in a group whose other places are filled: two of three are always whole.
//   - Places are evened out to within an eighth of the mean, or two, by the fewest moves.
//   - A home that is not up, or is slow, gives way to a filled target that is up and is not. Homes
//     are evened out to within a quarter of the mean, or two; no more, as each change costs the
//     group its leases.
// A second call changes nothing until places were filled.
void PlanGroups(MapContent& content, const GroupPlanOptions& options,
                const std::set<TargetId>& slow = {});

}  // namespace cairn::kv
