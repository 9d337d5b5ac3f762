// Reads the map; doubts only itself.
#include "kvstore/home/map_homes.h"

#include <utility>

namespace cairn::kv {

MapHomes::MapHomes(const Clock& clock, NodeId self, std::shared_ptr<const ClusterMap> map,
                   std::function<void(uint64_t)> refresh)
    : clock_(clock), self_(self), map_(std::move(map)), refresh_(std::move(refresh)) {}

void MapHomes::Use(std::shared_ptr<const ClusterMap> map) {
  if (map->epoch() > map_->epoch()) map_ = std::move(map);
}

NodeId MapHomes::HomeOf(uint16_t group_hash) const {
  const NodeId home = map_->HomeOf(map_->GroupOf(group_hash));
  return home == self_ && clock_.Now() >= member_until_ ? kNoNode : home;
}

}  // namespace cairn::kv
