// Checks a map's content, and the tables that make lookups short.
#include "kvstore/control/cluster_map.h"

#include <algorithm>
#include <set>

namespace cairn::kv {
namespace {

Status Wrong(const std::string& what) { return Status(Code::kInvalid, "cluster map: " + what); }

Status CheckShape(const ClusterShape& shape) {
  if (shape.group_bits < kGroupBitsMin || shape.group_bits > kGroupBitsMax) {
    return Wrong("group_bits must be " + std::to_string(kGroupBitsMin) + " to " +
                 std::to_string(kGroupBitsMax));
  }
  if (shape.data_shards == 0 || shape.data_shards > kDataShardsMax) {
    return Wrong("data_shards must be 1 to " + std::to_string(kDataShardsMax));
  }
  if (shape.parity_shards > kParityShardsMax) {
    return Wrong("parity_shards must be at most " + std::to_string(kParityShardsMax));
  }
  return Status();
}

Status CheckNode(const NodeEntry& node) {
  const std::string name = "node " + std::to_string(node.id.value);
  if (node.id == kNoNode) return Wrong("a node with id 0");
  if (node.protocol_min == 0 || node.protocol_min > node.protocol_max) {
    return Wrong(name + " has an empty range of protocol versions");
  }
  bool fits = node.name.size() <= kNodeTextMax && node.rack.size() <= kNodeTextMax &&
              node.addresses.size() <= kAddressesMax;
  for (const std::string& address : node.addresses) fits &= address.size() <= kNodeTextMax;
  return fits ? Status() : Wrong(name + " has a name, rack or address that is too long");
}

Status CheckNodes(const MapContent& content) {
  if (content.nodes.size() > kNodesMax) return Wrong("too many nodes");
  for (size_t i = 0; i < content.nodes.size(); ++i) {
    KV_RETURN_IF_ERROR(CheckNode(content.nodes[i]));
    if (i > 0 && content.nodes[i - 1].id >= content.nodes[i].id) return Wrong("nodes out of order");
  }
  return Status();
}

const NodeEntry* FindById(std::span<const NodeEntry> nodes, NodeId id) {
  const auto found =
      std::lower_bound(nodes.begin(), nodes.end(), id,
                       [](const NodeEntry& node, NodeId wanted) { return node.id < wanted; });
  return found != nodes.end() && found->id == id ? &*found : nullptr;
}

Status CheckTargets(const MapContent& content) {
  if (content.targets.size() > kTargetsMax) return Wrong("too many targets");
  std::vector<TargetId> ids;
  for (size_t i = 0; i < content.targets.size(); ++i) {
    const TargetEntry& target = content.targets[i];
    if (i > 0 && content.targets[i - 1].slot >= target.slot) return Wrong("targets out of order");
    if (target.id == kNoTarget || target.slot >= kTargetsMax) {
      return Wrong("a target with id 0, or in a slot that no target may have");
    }
    if (target.weight_percent > kWeightFull) return Wrong("a target of more than full weight");
    if (FindById(content.nodes, target.node) == nullptr) {
      return Wrong("a target of a node that is not there");
    }
    ids.push_back(target.id);
  }
  std::sort(ids.begin(), ids.end());
  const bool distinct = std::adjacent_find(ids.begin(), ids.end()) == ids.end();
  return distinct ? Status() : Wrong("one target twice");
}

// `targets` are known, and no two are of one domain; kNoTarget is left out.
Status CheckDistinct(const ClusterMap& map, std::span<const TargetId> targets,
                     const std::string& name) {
  std::vector<uint64_t> domains;
  for (const TargetId id : targets) {
    if (id == kNoTarget) continue;
    const TargetEntry* target = map.FindTarget(id);
    if (target == nullptr) return Wrong(name + " names a target that is not there");
    domains.push_back(DomainOf(map.shape(), *target));
  }
  std::sort(domains.begin(), domains.end());
  const bool distinct = std::adjacent_find(domains.begin(), domains.end()) == domains.end();
  return distinct ? Status() : Wrong(name + " has two targets in one failure domain");
}

Status CheckSets(const ClusterMap& map) {
  if (map.sets().size() > kStripeSetsMax) return Wrong("too many stripe sets");
  for (size_t i = 0; i < map.sets().size(); ++i) {
    const StripeSet& set = map.sets()[i];
    const std::string name = "stripe set " + std::to_string(set.id);
    if (i > 0 && map.sets()[i - 1].id >= set.id) return Wrong("stripe sets out of order");
    if (set.id >= kStripeSetsMax) return Wrong(name + " has too large an id");
    if (set.targets.empty() || set.targets.size() > map.shape().set_width()) {
      return Wrong(name + " is empty or too wide");
    }
    const auto none = std::find(set.targets.begin(), set.targets.end(), kNoTarget);
    if (none != set.targets.end()) return Wrong(name + " names target 0");
    KV_RETURN_IF_ERROR(CheckDistinct(map, set.targets, name));
  }
  return Status();
}

Status CheckGroups(const ClusterMap& map) {
  if (map.groups().size() != map.shape().group_count()) return Wrong("wrong number of groups");
  for (size_t i = 0; i < map.groups().size(); ++i) {
    const Group& group = map.groups()[i];
    const std::string name = "index group " + std::to_string(i);
    if (group.filling >> kIndexReplicas != 0 || group.since > map.epoch()) {
      return Wrong(name + " is out of bounds");
    }
    KV_RETURN_IF_ERROR(CheckDistinct(map, group.targets, name));
  }
  return Status();
}

}  // namespace

uint16_t CommonProtocol(std::span<const NodeEntry> nodes) {
  uint16_t lowest = 0;
  for (const NodeEntry& node : nodes) {
    if (node.state == MemberState::kLost || node.state == MemberState::kJoining) continue;
    lowest = lowest == 0 ? node.protocol_max : std::min(lowest, node.protocol_max);
  }
  return lowest;
}

Result<MapContent> EmptyMap(const ClusterShape& shape) {
  KV_RETURN_IF_ERROR(CheckShape(shape));
  MapContent content;
  content.epoch = 1;
  content.shape = shape;
  content.groups.resize(shape.group_count());
  return content;
}

Result<std::shared_ptr<const ClusterMap>> ClusterMap::Create(MapContent content) {
  if (content.epoch == 0) return Wrong("epoch 0");
  KV_RETURN_IF_ERROR(CheckShape(content.shape));
  KV_RETURN_IF_ERROR(CheckNodes(content));
  KV_RETURN_IF_ERROR(CheckTargets(content));
  std::shared_ptr<const ClusterMap> map(new ClusterMap(std::move(content)));
  KV_RETURN_IF_ERROR(CheckSets(*map));
  KV_RETURN_IF_ERROR(CheckGroups(*map));
  return map;
}

ClusterMap::ClusterMap(MapContent content)
    : content_(std::move(content)), protocol_(CommonProtocol(content_.nodes)) {
  for (uint32_t i = 0; i < content_.targets.size(); ++i) {
    target_order_.emplace_back(content_.targets[i].id, i);
  }
  std::sort(target_order_.begin(), target_order_.end());
  uint64_t sum = 0;
  for (const StripeSet& set : content_.sets) set_weights_.push_back(sum += set.weight);
}

const NodeEntry* ClusterMap::FindNode(NodeId id) const { return FindById(content_.nodes, id); }

const TargetEntry* ClusterMap::FindTarget(TargetId id) const {
  const std::pair<TargetId, uint32_t> wanted(id, 0);
  const auto found = std::lower_bound(target_order_.begin(), target_order_.end(), wanted);
  const bool there = found != target_order_.end() && found->first == id;
  return there ? &content_.targets[found->second] : nullptr;
}

NodeId ClusterMap::HomeOf(const Group& group) const {
  const TargetEntry* first = FindTarget(group.targets[0]);
  return first != nullptr ? first->node : kNoNode;
}

const StripeSet* ClusterMap::DrawSet(Random& random) const {
  if (set_weights_.empty() || set_weights_.back() == 0) return nullptr;
  const uint64_t drawn = random.Below(set_weights_.back());
  const auto found = std::upper_bound(set_weights_.begin(), set_weights_.end(), drawn);
  return &content_.sets[static_cast<size_t>(found - set_weights_.begin())];
}

uint64_t DomainOf(const ClusterShape& shape, const TargetEntry& target) {
  return shape.domain == FailureDomain::kNode ? target.node.value : target.id.value;
}

}  // namespace cairn::kv
