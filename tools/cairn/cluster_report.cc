// Nodes as rows, with what their targets add up to.
#include "tools/cairn/cluster_report.h"

#include <algorithm>
#include <set>

#include "kvstore/config/quantity.h"
#include "kvstore/control/cluster_map.h"
#include "kvstore/control/cluster_view.h"
#include "tools/planner/table.h"

namespace cairn::tools {
namespace {

using kv::ClusterInfo;
using kv::ClusterTargetInfo;
using kv::MemberState;
using kv::NodeEntry;

std::string Rough(uint64_t bytes) { return kv::RoughBytes(static_cast<double>(bytes)); }

bool IsAway(MemberState state) {
  return state == MemberState::kSuspect || state == MemberState::kLost;
}

const NodeEntry* FindNode(const ClusterInfo& cluster, kv::NodeId id) {
  const auto found = std::find_if(cluster.nodes.begin(), cluster.nodes.end(),
                                  [id](const NodeEntry& node) { return node.id == id; });
  return found == cluster.nodes.end() ? nullptr : &*found;
}

std::string StateText(MemberState state, bool draining, bool vacated) {
  std::string text = kv::NameOf(state);
  if (draining) text += vacated ? ", drained" : ", draining";
  return text;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : ", ").append(word);
  return text.empty() ? "-" : text;
}

// In the middle of an upgrade, also who is to follow.
std::string ProtocolText(const ClusterInfo& cluster) {
  const uint16_t spoken = kv::CommonProtocol(cluster.nodes);
  std::vector<std::string> behind;
  bool some_ahead = false;
  for (const NodeEntry& node : cluster.nodes) {
    if (node.protocol_max == spoken) behind.push_back(node.name);
    some_ahead = some_ahead || node.protocol_max > spoken;
  }
  const std::string text = std::to_string(spoken);
  return some_ahead ? text + "; newer once these speak it: " + Joined(behind) : text;
}

std::string CoordinatorText(const ClusterInfo& cluster) {
  if (cluster.coordinator != kv::kNoNode) return NodeNameOf(cluster, cluster.coordinator);
  return cluster.control.ok() ? "nobody" : "not known";
}

void AddNodeConcerns(const ClusterInfo& cluster, std::vector<std::string>& concerns) {
  for (const NodeEntry& node : cluster.nodes) {
    if (!IsAway(node.state) || node.draining) continue;
    concerns.push_back(node.name + " is " + kv::NameOf(node.state) +
                       (node.state == MemberState::kSuspect
                            ? ": it is not heard of"
                            : ": its shards are rebuilt on the others"));
  }
}

// Of targets whose node is there: the others are away with it.
void AddTargetConcerns(const ClusterInfo& cluster, std::vector<std::string>& concerns) {
  for (const ClusterTargetInfo& target : cluster.targets) {
    const NodeEntry* node = FindNode(cluster, target.node);
    if (node == nullptr || IsAway(node->state)) continue;
    if (!IsAway(target.state) || target.draining) continue;
    concerns.push_back("target " + std::to_string(target.id.value) + " of " + node->name + " is " +
                       kv::NameOf(target.state) + ": its node does not have it");
  }
}

Json NodeJson(const ClusterInfo& cluster, const NodeEntry& node) {
  const NodeTargets targets = TargetsOf(cluster, node.id);
  return {{"name", node.name},
          {"id", node.id.value},
          {"rack", node.rack},
          {"state", kv::NameOf(node.state)},
          {"draining", node.draining},
          {"vacated", node.draining && targets.AllVacated()},
          {"addresses", node.addresses},
          {"protocol_max", node.protocol_max},
          {"targets", targets.count},
          {"targets_draining", targets.draining},
          {"targets_vacated", targets.vacated},
          {"groups", targets.groups},
          {"capacity_bytes", targets.capacity_bytes},
          {"free_bytes", targets.free_bytes}};
}

Json TargetJson(const ClusterInfo& cluster, const ClusterTargetInfo& target) {
  return {{"id", target.id.value},
          {"node", NodeNameOf(cluster, target.node)},
          {"node_id", target.node.value},
          {"state", kv::NameOf(target.state)},
          {"draining", target.draining},
          {"vacated", target.vacated},
          {"weight_percent", target.weight_percent},
          {"groups", target.groups},
          {"capacity_bytes", target.capacity_bytes},
          {"free_bytes", target.free_bytes}};
}

}  // namespace

std::string NodeNameOf(const ClusterInfo& cluster, kv::NodeId id) {
  const NodeEntry* node = FindNode(cluster, id);
  return node != nullptr ? node->name : "node " + std::to_string(id.value);
}

NodeTargets TargetsOf(const ClusterInfo& cluster, kv::NodeId node) {
  NodeTargets sum;
  for (const ClusterTargetInfo& target : cluster.targets) {
    if (target.node != node) continue;
    ++sum.count;
    sum.draining += target.draining ? 1 : 0;
    sum.vacated += target.vacated ? 1 : 0;
    sum.groups += target.groups;
    sum.capacity_bytes += target.capacity_bytes;
    sum.free_bytes += target.free_bytes;
  }
  return sum;
}

std::vector<std::string> StuckDrains(const ClusterOverview& seen) {
  bool draining = false;
  std::set<kv::NodeId> left;
  for (const ClusterTargetInfo& target : seen.cluster.targets) {
    const NodeEntry* node = FindNode(seen.cluster, target.node);
    const bool leaves = target.draining || (node != nullptr && node->draining);
    draining = draining || (leaves && !target.vacated);
    if (!leaves && target.state != MemberState::kLost) left.insert(target.node);
  }
  std::vector<std::string> stuck;
  if (!draining) return stuck;
  for (const kv::SpaceInfo& space : seen.spaces) {
    const uint32_t width = uint32_t{space.options.data_shards} + space.options.parity_shards;
    if (space.options.medium == kv::Medium::kMemory || width <= left.size()) continue;
    stuck.push_back("namespace '" + space.options.name + "' (" + ShapeName(space.options) +
                    ") is wider than the " + std::to_string(left.size()) +
                    " nodes that are left: what it has there cannot leave until another node "
                    "joins");
  }
  return stuck;
}

std::vector<std::string> ClusterConcerns(const ClusterOverview& seen) {
  const ClusterInfo& cluster = seen.cluster;
  std::vector<std::string> concerns = StuckDrains(seen);
  if (cluster.epoch == 0) concerns.push_back("the cluster has no map yet");
  if (!cluster.control.ok()) {
    concerns.push_back(cluster.control.message() + "; blocks are served, but nothing changes");
  } else if (cluster.coordinator == kv::kNoNode) {
    concerns.push_back("nobody coordinates: nothing changes");
  }
  AddNodeConcerns(cluster, concerns);
  AddTargetConcerns(cluster, concerns);
  if (cluster.groups_homeless > 0) {
    concerns.push_back(std::to_string(cluster.groups_homeless) + " of " +
                       std::to_string(cluster.groups) + " index groups have no home that lives");
  }
  return concerns;
}

std::vector<std::string> ClusterNews(const ClusterInfo& cluster) {
  std::vector<std::string> news;
  for (const NodeEntry& node : cluster.nodes) {
    if (!node.draining || !TargetsOf(cluster, node.id).AllVacated()) continue;
    news.push_back(node.name + " is drained: it may be taken away");
  }
  for (const ClusterTargetInfo& target : cluster.targets) {
    const NodeEntry* node = FindNode(cluster, target.node);
    if (!target.draining || !target.vacated || (node != nullptr && node->draining)) continue;
    news.push_back("target " + std::to_string(target.id.value) + " of " +
                   NodeNameOf(cluster, target.node) + " is drained: it may be taken away");
  }
  return news;
}

std::string ClusterText(const ClusterOverview& seen, const std::string& address) {
  const ClusterInfo& cluster = seen.cluster;
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text.append(name).append(13 - name.size(), ' ').append(value).append("\n");
  };
  uint64_t capacity = 0, free = 0;
  for (const ClusterTargetInfo& target : cluster.targets) {
    capacity += target.capacity_bytes;
    free += target.free_bytes;
  }
  line("cluster", cluster.name + ", epoch " + std::to_string(cluster.epoch));
  line("asked", NodeNameOf(cluster, cluster.self) + " (" + address + ")");
  line("coordinator", CoordinatorText(cluster));
  line("capacity", Rough(capacity) + " raw, " + Rough(free) + " free, on " +
                       std::to_string(cluster.targets.size()) + " targets");
  line("protocol", ProtocolText(cluster));
  line("groups", std::to_string(cluster.groups) + ", " +
                     std::to_string(cluster.groups_homeless) + " homeless, " +
                     std::to_string(cluster.groups_filling) + " filling");
  const std::vector<std::string> concerns = ClusterConcerns(seen);
  line("health", concerns.empty() ? "all is well" : concerns.front());
  for (size_t i = 1; i < concerns.size(); ++i) line("", concerns[i]);
  for (const std::string& news : ClusterNews(cluster)) line("", news);
  Table table({"Node", ">Id", "Rack", "State", ">Targets", ">Groups", ">Capacity", ">Free",
               "Addresses"});
  for (const NodeEntry& node : cluster.nodes) {
    const NodeTargets targets = TargetsOf(cluster, node.id);
    table.Add({node.name, std::to_string(node.id.value), node.rack.empty() ? "-" : node.rack,
               StateText(node.state, node.draining, targets.AllVacated()),
               std::to_string(targets.count), std::to_string(targets.groups),
               Rough(targets.capacity_bytes), Rough(targets.free_bytes),
               Joined(node.addresses)});
  }
  return text + "\n" + table.ToText();
}

std::string ClusterTargetsText(const ClusterInfo& cluster) {
  Table table({">Target", "Node", "State", ">Groups", ">Capacity", ">Free", ">Weight"});
  for (const ClusterTargetInfo& target : cluster.targets) {
    table.Add({std::to_string(target.id.value), NodeNameOf(cluster, target.node),
               StateText(target.state, target.draining, target.vacated),
               std::to_string(target.groups), Rough(target.capacity_bytes),
               Rough(target.free_bytes), std::to_string(target.weight_percent) + " %"});
  }
  return table.ToText();
}

Json ClusterJson(const ClusterOverview& seen, const std::string& address) {
  const ClusterInfo& cluster = seen.cluster;
  const std::vector<std::string> concerns = ClusterConcerns(seen);
  Json json = {{"cluster", cluster.name},
               {"address", address},
               {"asked", NodeNameOf(cluster, cluster.self)},
               {"asked_id", cluster.self.value},
               {"healthy", concerns.empty()}};
  json["concerns"] = concerns;
  json["news"] = ClusterNews(cluster);
  json["epoch"] = cluster.epoch;
  const bool has_coordinator = cluster.coordinator != kv::kNoNode;
  json["coordinator"] =
      has_coordinator ? Json(NodeNameOf(cluster, cluster.coordinator)) : Json();
  json["control_store_answers"] = cluster.control.ok();
  json["protocol"] = kv::CommonProtocol(cluster.nodes);
  json["groups"] = cluster.groups;
  json["groups_homeless"] = cluster.groups_homeless;
  json["groups_filling"] = cluster.groups_filling;
  json["nodes"] = Json::array();
  for (const NodeEntry& node : cluster.nodes) json["nodes"].push_back(NodeJson(cluster, node));
  json["targets"] = Json::array();
  for (const ClusterTargetInfo& target : cluster.targets) {
    json["targets"].push_back(TargetJson(cluster, target));
  }
  return json;
}

}  // namespace cairn::tools
