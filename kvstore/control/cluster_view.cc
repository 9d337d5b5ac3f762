// Counts what the map has.
#include "kvstore/control/cluster_view.h"

namespace cairn::kv {

std::string ClusterView::WhyNotReady() const {
  if (epoch == 0) return "the cluster has no map yet";
  if (state == MemberState::kJoining) return "this node is joining the cluster";
  if (state != MemberState::kUp) return "the cluster does not hear of this node";
  if (groups_homeless == 0) return "";
  return std::to_string(groups_homeless) + " of " + std::to_string(groups) +
         " index groups have no home that lives";
}

ClusterView ViewOf(const ClusterMap& map, NodeId self) {
  ClusterView view;
  view.self = self;
  view.epoch = map.epoch();
  view.protocol = map.protocol();
  view.groups = map.groups().size();
  for (const NodeEntry& node : map.nodes()) ++view.nodes[node.state];
  for (const TargetEntry& target : map.targets()) {
    ++view.targets[target.state];
    view.draining_targets += target.draining ? 1 : 0;
  }
  for (const Group& group : map.groups()) {
    const NodeEntry* home = map.FindNode(map.HomeOf(group));
    const bool lives = home != nullptr && (home->state == MemberState::kUp ||
                                           home->state == MemberState::kJoining);
    view.groups_here += home != nullptr && home->id == self ? 1 : 0;
    view.groups_homeless += lives ? 0 : 1;
    view.groups_filling += group.filling != 0 ? 1 : 0;
  }
  const NodeEntry* entry = map.FindNode(self);
  if (entry != nullptr) view.state = entry->state;
  return view;
}

const char* NameOf(MemberState state) {
  switch (state) {
    case MemberState::kJoining: return "joining";
    case MemberState::kUp: return "up";
    case MemberState::kSuspect: return "suspect";
    case MemberState::kLost: return "lost";
  }
  return "unknown";
}

}  // namespace cairn::kv
