// Nodes of a cluster in virtual time: each with targets in memory, a home, and a store over all.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kvstore/client/striped_store.h"
#include "kvstore/home/home_service.h"
#include "kvstore/home/remote_index.h"
#include "kvstore/home/tenure_table.h"
#include "tests/unit/kvstore/home/far_target.h"
#include "tests/unit/kvstore/home/world_placement.h"

namespace cairn::kv {

// A process: its memory goes when it dies, its targets stay.
struct WorldNode {
  NodeId id;
  std::unique_ptr<NodeMap> map;
  std::vector<std::unique_ptr<FarTarget>> far;
  std::unique_ptr<TargetSet> set;
  std::unique_ptr<WorldPlacement> placement;
  std::unique_ptr<TenureTable> tenure;
  std::unique_ptr<Home> home;
  std::unique_ptr<HomeService> service;
  std::unique_ptr<IndexPeer> peer;
  std::unique_ptr<RemoteIndex> index;
  std::unique_ptr<StripedStore> store;
};

class World {
 public:
  struct Options {
    uint32_t nodes = 4;
    uint32_t targets_each = 3;
    uint64_t seed = 1;
    TenureOptions tenure = {.lease_max = Seconds(100), .node_lease = Seconds(2)};
  };

  explicit World(Options options);
  ~World() {
    for (auto& [id, one] : nodes_) graveyard_.push_back(std::move(one));
    clock_.RunUntilIdle();
    for (const auto& one : graveyard_) {
      Await(one->index->Stop());
      Await(one->store->Stop());
    }
  }

  void Start(NodeId id);
  // The process is gone at once.
  void Kill(uint32_t n) {
    links_.dead.insert({n});
    graveyard_.push_back(std::move(nodes_[{n}]));
    nodes_.erase({n});
  }
  void Restart(uint32_t n) {
    links_.dead.erase({n});
    Start({n});
  }
  // Groups of which `n` is the home go to the next of their targets, which may lack something.
  void TakeOver(uint32_t n);
  // Copies to homes what some other replica of their groups has.
  void Fill();
  // Every node that hears of it has the newest map.
  void Spread() {
    for (auto& [id, one] : nodes_) one->map->NoteEpoch(map_.epoch);
  }

  template <typename T>
  T Await(Task<T> task) {
    return clock_.Await(std::move(task));
  }
  void RunFor(Nanos time) { clock_.RunUntil(clock_.Now() + time); }

  WorldNode& node(uint32_t n) { return *nodes_.at({n}); }
  bool IsUp(uint32_t n) const { return nodes_.contains({n}); }
  FakeTarget& Find(TargetId id) { return *targets_.at(NodeOf(id))[id.value % 100]; }
  std::vector<FakeTarget*> all_targets() {
    std::vector<FakeTarget*> all;
    for (auto& [id, targets] : targets_) {
      for (auto& target : targets) all.push_back(target.get());
    }
    return all;
  }
  Links& links() { return links_; }
  WorldMap& map() { return map_; }
  Random& random() { return random_; }
  sim::SimClock& clock() { return clock_; }
  NodeId HomeOf(RunId run) const { return map_.GroupOf(GroupHashOf(space, run)).home; }

  NamespaceId space;

 private:
  class Peer;

  const Options options_;
  Loop loop_;
  sim::SimClock clock_;
  Random random_;
  Links links_;
  WorldSpaces spaces_;
  InlineWorkers workers_;
  NullLog log_;
  NoRoom keeper_;
  WorldMap map_;
  std::map<NodeId, std::vector<std::unique_ptr<FakeTarget>>> targets_;
  std::map<NodeId, std::unique_ptr<WorldNode>> nodes_;
  std::vector<std::unique_ptr<WorldNode>> graveyard_;
};

}  // namespace cairn::kv
