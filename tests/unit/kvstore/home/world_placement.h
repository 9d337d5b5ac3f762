// Where the nodes of the world put things: by their maps; and what they share without a message.
#pragma once

#include <utility>
#include <vector>

#include "kvstore/client/space_store.h"
#include "kvstore/client/target_choice.h"
#include "kvstore/client/target_set.h"
#include "kvstore/client/placement.h"
#include "tests/unit/kvstore/home/links.h"

namespace cairn::kv {

// By the node's map: three targets for each group, and any targets for a stripe.
class WorldPlacement final : public Placement {
 public:
  WorldPlacement(const NodeMap& map, const TargetSet& set, std::vector<TargetPort*> near)
      : map_(map), set_(set), near_(std::move(near)) {}

  std::vector<TargetId> ReplicaOrder(const NamespaceId& space, const RunId& run) const override {
    return map_.map().GroupOf(GroupHashOf(space, run)).targets;
  }
  std::span<TargetPort* const> FilersOf(const StripeId& stripe) const override {
    filers_.clear();
    for (const TargetId id : map_.map().GroupOf(GroupHashOf(stripe)).targets) {
      filers_.push_back(set_.Find(id));
    }
    return filers_;
  }
  std::span<TargetPort* const> NearTargets() const override { return near_; }
  size_t width_max() const override { return set_.live_count(); }
  std::optional<std::vector<TargetId>> ChooseTargets(size_t count, Random& random) override {
    const std::vector<TargetState> states = set_.States();
    return chooser_.Choose(states, count, random);
  }
  std::optional<TargetId> ChooseOther(std::span<const TargetId>, Random&) override {
    return std::nullopt;
  }
  bool RecoversFromShards() const override { return false; }
  std::vector<TargetPort*> HoldersOf(const Manifest* manifest) const override {
    std::vector<TargetPort*> ports;
    if (manifest == nullptr) return ports;
    for (const TargetId id : manifest->targets) ports.push_back(set_.Find(id));
    return ports;
  }

 private:
  const NodeMap& map_;
  const TargetSet& set_;
  TargetChooser chooser_;
  const std::vector<TargetPort*> near_;
  mutable std::vector<TargetPort*> filers_;
};

class NoRoom final : public SpaceKeeper {
 public:
  Task<Status> MakeRoom(uint64_t) override { co_return Status(Code::kNoSpace, "full"); }
};

// The namespaces, told to every node at once.
class WorldSpaces final : public SpaceStore {
 public:
  explicit WorldSpaces(Clock& clock) : clock_(clock) {}
  Task<Status> Load(SpaceRegistry& registry) override {
    registries_.push_back(&registry);
    for (const SpaceRecord& record : records_) registry.Load(record, clock_.UnixNow());
    co_return Status();
  }
  Task<Status> Save(SpaceRecord record) override {
    records_.push_back(record);
    for (SpaceRegistry* registry : registries_) registry->Load(record, clock_.UnixNow());
    co_return Status();
  }

 private:
  Clock& clock_;
  std::vector<SpaceRecord> records_;
  std::vector<SpaceRegistry*> registries_;
};

}  // namespace cairn::kv
