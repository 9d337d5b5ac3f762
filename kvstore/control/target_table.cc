// Sorted tables; the order among equals is a hash of load and id.
#include "kvstore/control/target_table.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "kvstore/base/checksum.h"

namespace cairn::kv {
namespace {

// A rack with room is looked for this far behind the first target that would do otherwise.
constexpr uint32_t kRackSearchMax = 1024;

uint64_t Tie(uint64_t load, TargetId id) {
  std::array<uint8_t, 16> bytes;
  for (size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<uint8_t>(load >> (8 * i));
    bytes[8 + i] = static_cast<uint8_t>(id.value >> (8 * i));
  }
  return Checksum(bytes);
}

}  // namespace

TargetTable::TargetTable(const MapContent& content) : content_(content) {
  std::map<NodeId, uint32_t> rack_of_node;
  std::map<std::string_view, uint32_t> racks;
  for (const NodeEntry& node : content.nodes) {
    const auto number = static_cast<uint32_t>(racks.size());
    rack_of_node[node.id] = racks.emplace(node.rack, number).first->second;
  }
  const bool has_racks = content.shape.domain == FailureDomain::kNode;
  for (uint32_t i = 0; i < content.targets.size(); ++i) {
    order_.emplace_back(content.targets[i].id, i);
    racks_.push_back(has_racks ? rack_of_node[content.targets[i].node] : 0);
  }
  std::sort(order_.begin(), order_.end());
}

uint32_t TargetTable::Find(TargetId id) const {
  const std::pair<TargetId, uint32_t> wanted(id, 0);
  const auto found = std::lower_bound(order_.begin(), order_.end(), wanted);
  return found != order_.end() && found->first == id ? found->second : kNowhere;
}

bool TargetTable::Stays(TargetId id) const {
  const uint32_t target = Find(id);
  return target != kNowhere && at(target).state != MemberState::kLost && !at(target).draining;
}

void PlaceFinder::Offer(uint32_t target, uint64_t load) {
  if (offers(target)) order_.erase(RankOf(target));
  load_[target] = load;
  order_.insert(RankOf(target));
  racks_.insert(table_.rack(target));
}

PlaceFinder::Rank PlaceFinder::RankOf(uint32_t target) const {
  return {load_[target], Tie(load_[target], table_.at(target).id), target};
}

uint32_t PlaceFinder::Find(std::span<const uint32_t> others) const {
  const uint64_t rack_limit = racks_.empty() ? width_ : DivCeil(width_, racks_.size());
  uint32_t crowded = kNowhere;
  uint32_t searched = 0;
  for (const auto& [load, tie, target] : order_) {
    if (crowded != kNowhere && ++searched > kRackSearchMax) break;
    uint64_t in_rack = 0;
    bool apart = true;
    for (const uint32_t other : others) {
      apart = apart && table_.domain(other) != table_.domain(target);
      in_rack += table_.rack(other) == table_.rack(target) ? 1 : 0;
    }
    if (apart && in_rack < rack_limit) return target;
    if (apart && crowded == kNowhere) crowded = target;
  }
  return crowded;
}

}  // namespace cairn::kv
