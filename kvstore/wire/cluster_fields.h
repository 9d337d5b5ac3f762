// The fields of a cluster as operators see it, in the order of docs/formats/wire.md.
#pragma once

#include "kvstore/wire/field_lists.h"

namespace cairn::kv::wire {

template <typename Io>
void Fields(Io& io, For<Io, NodeEntry>& node) {
  io.Int(node.id.value);
  io.Text(node.name, kNodeTextMax);
  io.Text(node.rack, kNodeTextMax);
  io.List(node.addresses, kAddressesMax, sizeof(uint32_t),
          [&io](auto& address) { io.Text(address, kNodeTextMax); });
  io.Int(node.protocol_min);
  io.Int(node.protocol_max);
  io.Enum(node.state, MemberState::kLost);
  io.Bool(node.draining);
}

template <typename Io>
void Fields(Io& io, For<Io, ClusterTargetInfo>& target) {
  io.Int(target.id.value);
  io.Int(target.node.value);
  io.Enum(target.state, MemberState::kLost);
  io.Bool(target.draining);
  io.Int(target.weight_percent);
  io.Int(target.capacity_bytes);
  io.Int(target.free_bytes);
  io.Int(target.groups);
  io.Bool(target.vacated);
}

template <typename Io>
void Fields(Io& io, For<Io, ClusterInfo>& cluster) {
  constexpr size_t kTargetSize = 36;
  io.Text(cluster.name, kNameMax);
  io.Int(cluster.self.value);
  io.Int(cluster.coordinator.value);
  io.Int(cluster.epoch);
  io.Int(cluster.groups);
  io.Int(cluster.groups_homeless);
  io.Int(cluster.groups_filling);
  StatusFields(io, cluster.control);
  io.List(cluster.nodes, kNodesMax, kIdSize, [&io](auto& node) { Fields(io, node); });
  io.List(cluster.targets, kv::kTargetsMax, kTargetSize,
          [&io](auto& target) { Fields(io, target); });
}

}  // namespace cairn::kv::wire
