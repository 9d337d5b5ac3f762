// What a store in one process stands on: the home of all its runs, for fixtures.
#pragma once

#include <set>
#include <vector>

#include "kvstore/client/home.h"
#include "kvstore/client/local_placement.h"
#include "kvstore/client/space_store.h"

namespace cairn::kv {

// Of one process, or (where nothing is recovered from shards) as if others wrote as well.
class FakePlacement final : public Placement {
 public:
  explicit FakePlacement(const TargetSet& targets) : local_(targets) {}

  std::vector<TargetId> ReplicaOrder(const NamespaceId& space, const RunId& run) const override {
    return Without(away, local_.ReplicaOrder(space, run));
  }
  std::vector<TargetId> Places(const NamespaceId& space, const RunId& run) const override {
    return local_.ReplicaOrder(space, run);
  }
  std::vector<TargetId> Filled(const NamespaceId& space, const RunId& run) const override {
    return Without(filling, local_.ReplicaOrder(space, run));
  }
  std::span<TargetPort* const> FilersOf(const StripeId& stripe) const override {
    return local_.FilersOf(stripe);
  }
  std::span<TargetPort* const> NearTargets() const override { return local_.NearTargets(); }
  size_t width_max() const override { return local_.width_max(); }
  std::optional<std::vector<TargetId>> ChooseTargets(size_t count, Random& random) override {
    return local_.ChooseTargets(count, random);
  }
  std::optional<TargetId> ChooseOther(std::span<const TargetId> barred, Random& random) override {
    return local_.ChooseOther(barred, random);
  }
  std::vector<TargetPort*> HoldersOf(const Manifest* manifest) const override {
    return local_.HoldersOf(manifest);
  }
  bool RecoversFromShards() const override { return recovers; }

  bool recovers = true;
  std::set<TargetId> away;     // Of every run's replicas.
  std::set<TargetId> filling;  // The same.

 private:
  static std::vector<TargetId> Without(const std::set<TargetId>& some, std::vector<TargetId> ids) {
    std::erase_if(ids, [&](TargetId id) { return some.contains(id); });
    return ids;
  }

  LocalPlacement local_;
};

struct LocalHome {
  struct Parts {
    Loop& loop;
    Clock& clock;
    Random& random;
    Log& log;
    TargetSet& targets;
  };
  explicit LocalHome(Parts parts, HomeOptions options = {})
      : placement(parts.targets),
        space_store(parts.clock, parts.log, parts.targets),
        home({.loop = parts.loop,
              .clock = parts.clock,
              .random = parts.random,
              .log = parts.log,
              .targets = parts.targets,
              .placement = placement,
              .tenure = tenure},
             options) {}

  FakePlacement placement;
  TargetSpaceStore space_store;
  SoleHome tenure;
  Home home;
};

}  // namespace cairn::kv
