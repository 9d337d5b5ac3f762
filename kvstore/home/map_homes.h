// Who is the home of which runs, by the map that this node has.
#pragma once

#include <functional>
#include <memory>

#include "kvstore/control/cluster_map.h"
#include "kvstore/home/home_map.h"
#include "kvstore/io/clock.h"

namespace cairn::kv {

// Loop thread only. `clock` must outlive it.
class MapHomes final : public HomeMap {
 public:
  // `refresh` is told that somebody has a map of a higher epoch; it may be told often.
  MapHomes(const Clock& clock, NodeId self, std::shared_ptr<const ClusterMap> map,
           std::function<void(uint64_t)> refresh);

  // An older map than the present one is ignored.
  void Use(std::shared_ptr<const ClusterMap> map);
  // Until when this node may take itself for a member: as long as its lease in the control store
  // lasts for sure. Before the first call it is no home.
  void SetMemberUntil(Instant until) { member_until_ = until; }

  NodeId self() const override { return self_; }
  uint64_t epoch() const override { return map_->epoch(); }
  NodeId HomeOf(uint16_t group_hash) const override;
  uint64_t HomeSince(uint16_t group_hash) const override {
    return map_->GroupOf(group_hash).since;
  }
  bool IsWhole(uint16_t group_hash) const override {
    return !map_->GroupOf(group_hash).IsFilling(0);
  }
  uint8_t group_bits() const override { return map_->shape().group_bits; }
  void NoteEpoch(uint64_t epoch) override {
    if (epoch > map_->epoch()) refresh_(epoch);
  }

 private:
  const Clock& clock_;
  const NodeId self_;
  std::shared_ptr<const ClusterMap> map_;
  std::function<void(uint64_t)> refresh_;
  Instant member_until_ = {};
};

}  // namespace cairn::kv
