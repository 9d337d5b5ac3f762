// Everything over the node's own targets.
#include "kvstore/node/sole_surroundings.h"

namespace cairn::kv {

Task<Status> SoleSurroundings::Join(const LocalTargets& own) {
  own_ = &own;
  std::vector<TargetPort*> ports;
  for (const auto& target : own) ports.push_back(target.get());
  set_.emplace(clock_, std::move(ports));
  placement_.emplace(*set_);
  space_store_.emplace(clock_, log_, *set_);
  co_return Status();
}

}  // namespace cairn::kv
