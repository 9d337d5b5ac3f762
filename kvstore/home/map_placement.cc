// Sets by two random choices; groups as the map has them.
#include "kvstore/home/map_placement.h"

#include <algorithm>
#include <set>
#include <utility>

#include "kvstore/types/group_hash.h"

namespace cairn::kv {
namespace {

constexpr int kDraws = 16;
constexpr size_t kSetsLookedAt = 64;

// What is slowest and fullest in a set decides.
struct SetLoad {
  uint32_t queue = 0;
  uint64_t free_bytes = UINT64_MAX;
};

SetLoad LoadOf(const std::vector<TargetState>& targets) {
  SetLoad load;
  for (const TargetState& target : targets) {
    load.queue = std::max(load.queue, target.queue);
    load.free_bytes = std::min(load.free_bytes, target.free_bytes);
  }
  return load;
}

// Among about equal queues more free space wins, as for single targets.
bool IsBetter(const SetLoad& a, const SetLoad& b) {
  if (a.queue / 4 != b.queue / 4) return a.queue < b.queue;
  return a.free_bytes > b.free_bytes;
}

}  // namespace

MapPlacement::MapPlacement(NodeId self, const TargetSet& targets, Random& random,
                           std::shared_ptr<const ClusterMap> map)
    : self_(self), targets_(targets), random_(random) {
  Use(std::move(map));
}

void MapPlacement::Use(std::shared_ptr<const ClusterMap> map) {
  map_ = std::move(map);
  near_.clear();
  for (TargetPort* port : targets_.ports()) {
    const TargetEntry* entry = map_->FindTarget(port->id());
    if (entry != nullptr && entry->node == self_) near_.push_back(port);
  }
  filers_.assign(map_->groups().size(), {});
  for (size_t i = 0; i < filers_.size(); ++i) {
    for (const TargetId id : map_->groups()[i].targets) {
      TargetPort* port = targets_.Find(id);
      if (port != nullptr) filers_[i].push_back(port);
    }
  }
}

bool MapPlacement::IsAway(TargetId id) const {
  const TargetEntry* entry = map_->FindTarget(id);
  return entry == nullptr || entry->state == MemberState::kSuspect ||
         entry->state == MemberState::kLost;
}

std::vector<TargetId> MapPlacement::ReplicaOrder(const NamespaceId& space,
                                                 const RunId& run) const {
  std::vector<TargetId> order = Places(space, run);
  std::erase_if(order, [this](TargetId id) { return IsAway(id); });
  return order;
}

std::vector<TargetId> MapPlacement::Sources(const NamespaceId& space, const RunId& run) const {
  const Group& group = map_->GroupOf(GroupHashOf(space, run));
  std::vector<TargetId> sources;
  for (size_t place = 0; place < kIndexReplicas; ++place) {
    const TargetId id = group.targets[place];
    if (group.IsSource(place) && !IsAway(id)) sources.push_back(id);
  }
  return sources.empty() ? ReplicaOrder(space, run) : sources;
}

std::vector<TargetId> MapPlacement::Places(const NamespaceId& space, const RunId& run) const {
  std::vector<TargetId> places;
  for (const TargetId id : map_->GroupOf(GroupHashOf(space, run)).targets) {
    if (id != kNoTarget) places.push_back(id);
  }
  return places;
}

std::vector<TargetId> MapPlacement::Filled(const NamespaceId& space, const RunId& run) const {
  const Group& group = map_->GroupOf(GroupHashOf(space, run));
  std::vector<TargetId> filled;
  for (size_t place = 0; place < kIndexReplicas; ++place) {
    const TargetId id = group.targets[place];
    if (id != kNoTarget && !group.IsFilling(place)) filled.push_back(id);
  }
  return filled.empty() ? Places(space, run) : filled;
}

std::span<TargetPort* const> MapPlacement::FilersOf(const StripeId& stripe) const {
  return filers_[map_->GroupIndexOf(GroupHashOf(stripe))];
}

std::vector<TargetState> MapPlacement::UsableOf(const StripeSet& set) const {
  std::vector<TargetState> usable;
  for (const TargetId id : set.targets) {
    const TargetPort* port = targets_.Find(id);
    const TargetEntry* entry = map_->FindTarget(id);
    if (port == nullptr || entry == nullptr) continue;
    if (!entry->writable() || !targets_.IsLive(id)) continue;
    usable.push_back({.id = id,
                      .live = true,
                      .free_bytes = port->free_bytes(),
                      .queue = port->operations_in_flight()});
  }
  return usable;
}

size_t MapPlacement::width_max() const {
  const std::span<const StripeSet> sets = map_->sets();
  size_t widest = 0;
  for (size_t i = 0; i < std::min(sets.size(), kSetsLookedAt); ++i) {
    const size_t at = sets.size() <= kSetsLookedAt ? i : random_.Below(sets.size());
    widest = std::max(widest, UsableOf(sets[at]).size());
  }
  return widest;
}

std::optional<std::vector<TargetId>> MapPlacement::ChooseTargets(size_t count, Random& random) {
  std::vector<TargetState> best;
  int found = 0;
  for (int draw = 0; draw < kDraws && found < 2; ++draw) {
    const StripeSet* set = map_->DrawSet(random);
    if (set == nullptr) break;
    std::vector<TargetState> usable = UsableOf(*set);
    if (usable.size() < count) continue;
    ++found;
    if (best.empty() || IsBetter(LoadOf(usable), LoadOf(best))) best = std::move(usable);
  }
  return chooser_.Choose(best, count, random);
}

std::optional<TargetId> MapPlacement::ChooseOther(std::span<const TargetId> barred,
                                                  Random& random) {
  std::set<uint64_t> domains;
  for (const TargetId id : barred) {
    const TargetEntry* entry = map_->FindTarget(id);
    if (entry != nullptr && targets_.Find(id) != nullptr) {
      domains.insert(DomainOf(map_->shape(), *entry));
    }
  }
  std::vector<TargetState> candidates;
  for (int draw = 0; draw < kDraws && candidates.size() < 2; ++draw) {
    const StripeSet* set = map_->DrawSet(random);
    if (set == nullptr) break;
    for (const TargetState& state : UsableOf(*set)) {
      const bool is_barred = std::find(barred.begin(), barred.end(), state.id) != barred.end();
      const uint64_t domain = DomainOf(map_->shape(), *map_->FindTarget(state.id));
      if (!is_barred && !domains.contains(domain)) candidates.push_back(state);
    }
  }
  const auto chosen = chooser_.Choose(candidates, 1, random);
  if (!chosen) return std::nullopt;
  return chosen->front();
}

bool MapPlacement::IsLeaving(TargetId id) const {
  const TargetEntry* entry = map_->FindTarget(id);
  return entry != nullptr && entry->draining;
}

std::vector<TargetPort*> MapPlacement::HoldersOf(const Manifest* manifest) const {
  std::vector<TargetPort*> ports;
  if (manifest == nullptr) return ports;
  for (const TargetId id : manifest->targets) {
    TargetPort* port = targets_.Find(id);
    if (port != nullptr) ports.push_back(port);
  }
  return ports;
}

}  // namespace cairn::kv
