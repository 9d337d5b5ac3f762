// Decides which targets form stripe sets. Pure.
//
// Each target is in a bounded number of sets, in proportion to its capacity. That bound is the
// scatter width: with 8 sets of 12 a target shares stripes with at most 88 others. So a lost target
// is rebuilt by 88 others at about a hundredth of their rate each; and of 20,000 targets any three
// that die together have a stripe in common in two cases of a million, where with targets drawn at
// random for each stripe some stripe would be lost nearly every time.
#pragma once

#include <cstdint>

#include "kvstore/control/cluster_map.h"

namespace cairn::kv {

struct SetPlanOptions {
  uint32_t sets_per_target = 8;  // Of a target of mean capacity.
};

// Brings content.sets up to date with content.targets. Moves no data: stripes stay where their
// manifests say, and go with their time.
//   - The place of a lost or draining target goes to another one, if there is one; else it stays.
//   - Targets that are in too few sets (new ones) get new sets.
//   - A set is retired (left out) when all its targets are in more sets than they should be and no
//     target starts slowly any more, and when there are enough domains now for wider ones.
// Repeated calls come to rest.
void PlanSets(MapContent& content, const SetPlanOptions& options);

}  // namespace cairn::kv
