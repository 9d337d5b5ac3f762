// Asks the targets how they are, and leaves the choice to target_choice.h.
#include "kvstore/client/local_placement.h"

#include <algorithm>

namespace cairn::kv {

std::vector<TargetId> LocalPlacement::ReplicaOrder(const NamespaceId& space,
                                                   const RunId& run) const {
  return cairn::kv::ReplicaOrder(space, run, targets_.ids());
}

std::optional<std::vector<TargetId>> LocalPlacement::ChooseTargets(size_t count, Random& random) {
  const std::vector<TargetState> states = targets_.States();
  return chooser_.Choose(states, count, random);
}

std::optional<TargetId> LocalPlacement::ChooseOther(std::span<const TargetId> barred,
                                                    Random& random) {
  std::vector<TargetState> states = targets_.States();
  for (TargetState& state : states) {
    if (std::find(barred.begin(), barred.end(), state.id) != barred.end()) state.live = false;
  }
  const auto chosen = chooser_.Choose(states, 1, random);
  if (!chosen) return std::nullopt;
  return chosen->front();
}

}  // namespace cairn::kv
