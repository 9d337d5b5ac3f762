// Clusters for tests of planners: nodes and targets by the dozen, and what must hold of any map.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kvstore/control/cluster_map.h"
#include "kvstore/control/group_planner.h"
#include "kvstore/control/membership.h"
#include "kvstore/control/set_planner.h"

namespace cairn::kv {

struct ClusterOptions {
  uint32_t nodes = 12;
  uint32_t targets_per_node = 4;
  uint32_t racks = 0;  // 0: none.
  uint64_t capacity = kTiB;
  ClusterShape shape = {};
};

inline NodeEntry NodeOf(uint32_t id, uint32_t racks) {
  return {.id = {id},
          .name = "node-" + std::to_string(id),
          .rack = racks == 0 ? "" : "rack-" + std::to_string(id % racks),
          .addresses = {"10.0.0." + std::to_string(id) + ":7000"},
          .state = MemberState::kUp};
}

inline TargetId TargetIdOf(uint32_t node, uint32_t number) {
  return {uint64_t{node} * 1000 + number + 1};
}

inline void AddNode(MapContent& content, uint32_t id, const ClusterOptions& options) {
  content.nodes.push_back(NodeOf(id, options.racks));
  for (uint32_t i = 0; i < options.targets_per_node; ++i) {
    const auto slot =
        static_cast<uint16_t>(content.targets.empty() ? 0 : content.targets.back().slot + 1);
    content.targets.push_back({.id = TargetIdOf(id, i),
                               .slot = slot,
                               .node = {id},
                               .capacity = options.capacity,
                               .state = MemberState::kUp});
  }
}

// All up, nothing planned yet.
inline MapContent ContentOf(const ClusterOptions& options) {
  MapContent content = EmptyMap(options.shape).value();
  for (uint32_t id = 1; id <= options.nodes; ++id) AddNode(content, id, options);
  return content;
}

inline void PlanPlaces(MapContent& content) {
  ++content.epoch;
  PlanSets(content, {});
  PlanGroups(content, {});
}

inline MapContent PlannedCluster(const ClusterOptions& options) {
  MapContent content = ContentOf(options);
  PlanPlaces(content);
  return content;
}

inline std::shared_ptr<const ClusterMap> MapOf(MapContent content) {
  auto map = ClusterMap::Create(std::move(content));
  EXPECT_TRUE(map.ok()) << map.status().ToString();
  return std::move(map).value();
}

inline void SetState(MapContent& content, NodeId node, MemberState state) {
  for (NodeEntry& entry : content.nodes) {
    if (entry.id == node) entry.state = state;
  }
  for (TargetEntry& target : content.targets) {
    if (target.node == node) target.state = state;
  }
}

inline std::map<TargetId, uint32_t> PlacesInGroups(const MapContent& content) {
  std::map<TargetId, uint32_t> places;
  for (const TargetEntry& target : content.targets) places[target.id] = 0;
  for (const Group& group : content.groups) {
    for (const TargetId target : group.targets) ++places[target];
  }
  return places;
}

inline std::map<TargetId, uint32_t> HomesOf(const MapContent& content) {
  std::map<TargetId, uint32_t> homes;
  for (const TargetEntry& target : content.targets) homes[target.id] = 0;
  for (const Group& group : content.groups) ++homes[group.targets[0]];
  return homes;
}

inline std::map<TargetId, uint32_t> Memberships(const MapContent& content) {
  std::map<TargetId, uint32_t> sets;
  for (const TargetEntry& target : content.targets) sets[target.id] = 0;
  for (const StripeSet& set : content.sets) {
    for (const TargetId target : set.targets) ++sets[target];
  }
  return sets;
}

template <typename Key>
std::pair<uint32_t, uint32_t> MinMax(const std::map<Key, uint32_t>& counts) {
  std::pair<uint32_t, uint32_t> range(UINT32_MAX, 0);
  for (const auto& [key, count] : counts) {
    range.first = std::min(range.first, count);
    range.second = std::max(range.second, count);
  }
  return range;
}

// How many places of groups and sets differ, of those that both have.
inline uint32_t PlacesMoved(const MapContent& before, const MapContent& after) {
  uint32_t moved = 0;
  for (size_t i = 0; i < before.groups.size(); ++i) {
    const auto& now = after.groups[i].targets;
    for (const TargetId target : before.groups[i].targets) {
      moved += std::find(now.begin(), now.end(), target) == now.end() ? 1 : 0;
    }
  }
  return moved;
}

}  // namespace cairn::kv
