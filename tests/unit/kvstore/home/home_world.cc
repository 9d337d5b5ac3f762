// Puts nodes together, and moves homes between them.
#include "tests/unit/kvstore/home/home_world.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/status_matchers.h"

namespace cairn::kv {

World::World(Options options)
    : options_(options), clock_(loop_), random_(options.seed), links_(clock_, options.seed + 1),
      spaces_(clock_) {
  for (uint32_t n = 1; n <= options.nodes; ++n) {
    for (uint32_t t = 0; t < options.targets_each; ++t) {
      targets_[{n}].push_back(std::make_unique<FakeTarget>(n * 100 + t));
      targets_[{n}].back()->now_seconds = [this] {
        return static_cast<uint32_t>(clock_.UnixNow().value / 1000);
      };
    }
  }
  for (uint32_t g = 0; g < kGroups; ++g) {
    for (uint32_t r = 0; r < kIndexReplicas; ++r) {
      const uint32_t node = 1 + (g + r) % options.nodes;
      map_.groups[g].targets.push_back({node * 100 + g / options.nodes % options.targets_each});
    }
    map_.groups[g].home = NodeOf(map_.groups[g].targets[0]);
  }
  for (uint32_t n = 1; n <= options.nodes; ++n) Start({n});
  RunFor(options.tenure.lease_max);  // Everybody may do everything.
  space = Await(node(1).store->Attach({.name = "tests",
                                       .fingerprint = "f",
                                       .data_shards = 4,
                                       .parity_shards = 2,
                                       .run_blocks = 4}))
              .value();
}

void World::TakeOver(uint32_t n) {
  ++map_.epoch;
  for (WorldMap::Group& group : map_.groups) {
    if (group.home != NodeId{n}) continue;
    std::rotate(group.targets.begin(), group.targets.begin() + 1, group.targets.end());
    group.home = NodeOf(group.targets[0]);
    group.since = map_.epoch;
    group.filling = true;
  }
  Spread();
}

void World::Fill() {
  ++map_.epoch;
  for (WorldMap::Group& group : map_.groups) {
    if (!group.filling) continue;
    group.filling = false;
    std::map<StripeId, IndexedStripe> all;
    for (const TargetId id : group.targets) {
      for (const auto& [stripe, filed] : Find(id).filed) all.emplace(stripe, filed);
    }
    FakeTarget& home = Find(group.targets[0]);
    for (const auto& [stripe, filed] : all) {
      if (&map_.GroupOf(GroupHashOf(stripe)) == &group) home.filed.emplace(stripe, filed);
    }
  }
  Spread();
}

class World::Peer final : public IndexPeer {
 public:
  Peer(World& world, NodeId self) : world_(world), self_(self) {}

  Task<Result<Bytes>> Call(NodeId home, Bytes request, Instant) override {
    KV_CO_RETURN_IF_ERROR(co_await world_.links_.Travel(self_, home));
    const auto found = world_.nodes_.find(home);
    if (found == world_.nodes_.end()) co_return Status(Code::kUnavailable, "not running");
    Bytes answer = co_await found->second->service->Answer(self_, std::move(request));
    KV_CO_RETURN_IF_ERROR(co_await world_.links_.Travel(home, self_));
    co_return std::move(answer);
  }

 private:
  World& world_;
  const NodeId self_;
};

void World::Start(NodeId id) {
  auto one = std::make_unique<WorldNode>();
  one->id = id;
  one->map = std::make_unique<NodeMap>(id, map_);
  nodes_[id] = std::move(one);
  WorldNode& self = *nodes_[id];
  std::vector<TargetPort*> ports;
  std::vector<TargetPort*> near;
  for (auto& [owner, targets] : targets_) {
    for (auto& target : targets) {
      if (owner == id) {
        near.push_back(target.get());
        ports.push_back(target.get());
        continue;
      }
      self.far.push_back(std::make_unique<FarTarget>(FarTarget::Parts{
          .links = links_, .sender = *self.map, .world = map_, .target = *target}));
      ports.push_back(self.far.back().get());
    }
  }
  self.set = std::make_unique<TargetSet>(clock_, ports);
  self.placement = std::make_unique<WorldPlacement>(*self.map, *self.set, near);
  self.tenure = std::make_unique<TenureTable>(clock_, *self.map, options_.tenure);
  self.map->on_change = [tenure = self.tenure.get()] { tenure->Update(); };
  self.home = std::make_unique<Home>(Home::Parts{.loop = loop_,
                                                 .clock = clock_,
                                                 .random = random_,
                                                 .log = log_,
                                                 .targets = *self.set,
                                                 .placement = *self.placement,
                                                 .tenure = *self.tenure},
                                     HomeOptions{});
  self.service = std::make_unique<HomeService>(
      HomeService::Parts{.map = *self.map, .index = self.home->index()});
  self.peer = std::make_unique<Peer>(*this, id);
  self.index = std::make_unique<RemoteIndex>(RemoteIndex::Parts{.loop = loop_,
                                                                .clock = clock_,
                                                                .random = random_,
                                                                .map = *self.map,
                                                                .peer = *self.peer,
                                                                .own = self.home->index(),
                                                                .targets = *self.set,
                                                                .placement = *self.placement},
                                             RemoteIndexOptions{});
  StripedStoreOptions options;
  options.shard_size_max = 8 * kMiB;
  options.cache.bytes_max = 0;
  self.store = std::make_unique<StripedStore>(StripedStoreParts{.loop = loop_,
                                                                .clock = clock_,
                                                                .workers = workers_,
                                                                .random = random_,
                                                                .log = log_,
                                                                .targets = *self.set,
                                                                .placement = *self.placement,
                                                                .home = *self.home,
                                                                .index = *self.index,
                                                                .space_store = spaces_,
                                                                .keeper = keeper_},
                                              options);
  EXPECT_THAT(Await(self.store->LoadSpaces()), testing::IsOk());
}

}  // namespace cairn::kv
