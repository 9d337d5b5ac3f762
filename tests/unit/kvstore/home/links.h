// The map of a small cluster as its nodes have it, and the links between them.
#pragma once

#include <array>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "kvstore/home/home_map.h"
#include "kvstore/types/limits.h"
#include "tests/sim/sim_clock.h"

namespace cairn::kv {

inline constexpr uint8_t kGroupBits = 4;
inline constexpr size_t kGroups = size_t{1} << kGroupBits;

// What a control store would hold.
struct WorldMap {
  struct Group {
    std::vector<TargetId> targets;  // The home's own first.
    NodeId home;
    uint64_t since = 1;
    bool filling = false;
  };
  uint64_t epoch = 1;
  std::array<Group, kGroups> groups;
  const Group& GroupOf(uint16_t hash) const { return groups[hash >> (16 - kGroupBits)]; }
};

inline NodeId NodeOf(TargetId target) { return {static_cast<uint32_t>(target.value / 100)}; }

// Who is dead, which links are cut, and how long messages take.
class Links {
 public:
  Links(sim::SimClock& clock, uint64_t seed) : clock_(clock), random_(seed) {}

  // One message. kUnavailable when it does not arrive.
  Task<Status> Travel(NodeId from, NodeId to) {
    const bool lost = IsCut(from, to) || random_.Chance(loss_per_million, 1'000'000);
    const auto micros = static_cast<int64_t>(20 + random_.Below(200));
    const Nanos more = far.contains(from) || far.contains(to) ? far_latency : Nanos{0};
    const Nanos latency = lost ? Millis(200) : Micros(micros) + more;
    co_await clock_.SleepUntil(clock_.Now() + latency, nullptr);
    if (lost || IsCut(from, to)) co_return Status(Code::kUnavailable, "no answer");
    co_return Status();
  }
  bool IsCut(NodeId from, NodeId to) const {
    return dead.contains(from) || dead.contains(to) || cuts.contains({from, to});
  }
  void CutBoth(NodeId a, NodeId b) {
    cuts.insert({a, b});
    cuts.insert({b, a});
  }

  std::set<NodeId> dead;
  std::set<std::pair<NodeId, NodeId>> cuts;
  uint64_t loss_per_million = 0;
  std::set<NodeId> far;
  Nanos far_latency = Millis(15);  // More, for each message from or to them.

 private:
  sim::SimClock& clock_;
  Random random_;
};

// The map as one node has it.
class NodeMap final : public HomeMap {
 public:
  NodeMap(NodeId self, const WorldMap& world) : self_(self), world_(world), map_(world) {}

  NodeId self() const override { return self_; }
  uint64_t epoch() const override { return map_.epoch; }
  NodeId HomeOf(uint16_t hash) const override { return map_.GroupOf(hash).home; }
  uint64_t HomeSince(uint16_t hash) const override { return map_.GroupOf(hash).since; }
  bool IsWhole(uint16_t hash) const override { return !map_.GroupOf(hash).filling; }
  uint8_t group_bits() const override { return kGroupBits; }
  void NoteEpoch(uint64_t epoch) override {
    if (epoch > map_.epoch && !frozen) Refresh();
  }
  void Refresh() {
    map_ = world_;
    if (on_change) on_change();
  }
  const WorldMap& map() const { return map_; }

  bool frozen = false;  // Does not hear of new maps.
  std::function<void()> on_change;

 private:
  const NodeId self_;
  const WorldMap& world_;
  WorldMap map_;
};

}  // namespace cairn::kv
