// A stub for each target that was ever seen.
#include "kvstore/cluster/far_targets.h"

namespace cairn::kv {
namespace {

// The more targets there are, the less often each is asked how it is.
constexpr int64_t kTargetsASecond = 256;

}  // namespace

std::vector<TargetPort*> FarTargets::Use(const ClusterMap& map, NodeId self) {
  PeerTargetOptions options;
  options.flush_every =
      Seconds(1 + static_cast<int64_t>(map.targets().size()) / kTargetsASecond);
  std::vector<TargetPort*> ports;
  for (const TargetEntry& entry : map.targets()) {
    if (entry.node == self || entry.state == MemberState::kLost) continue;
    std::unique_ptr<PeerTarget>& target = targets_[{entry.node, entry.id}];
    if (target == nullptr) {
      target = std::make_unique<PeerTarget>(loop_, caller_, entry.node, entry.id, options);
    }
    ports.push_back(target.get());
  }
  return ports;
}

Task<void> FarTargets::Stop() {
  std::vector<Task<void>> stops;
  for (auto& [key, target] : targets_) stops.push_back(target->Stop());
  for (Task<void>& stop : stops) co_await stop;
}

}  // namespace cairn::kv
