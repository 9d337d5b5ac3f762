// Greedy: each place goes to the target that has the fewest places for its capacity.
#include "kvstore/control/set_planner.h"

#include <algorithm>
#include <set>

#include "kvstore/control/target_table.h"

namespace cairn::kv {
namespace {

constexpr uint32_t kSetsOfLargestTarget = 8;  // In multiples of sets_per_target.
constexpr uint64_t kLoadUnit = 1 << 20;

class SetPlanner {
 public:
  SetPlanner(MapContent& content, const SetPlanOptions& options)
      : content_(content), table_(content), finder_(table_, content.shape.set_width()),
        wanted_(table_.size()), memberships_(table_.size()) {
    CountWanted(options.sets_per_target);
  }

  void Plan() {
    for (StripeSet& set : content_.sets) Mend(set);
    std::erase_if(content_.sets, [this](const StripeSet& set) {
      return set.targets.size() <= content_.shape.parity_shards;
    });
    RetireNarrow();
    // What is retired makes room for other sets. It ends: who was in too few sets gets more in
    // each round, and loses none.
    bool changed = true;
    while (changed) {
      changed = AddMissing();
      changed |= RetireSurplus();
    }
    std::sort(content_.sets.begin(), content_.sets.end(),
              [](const StripeSet& a, const StripeSet& b) { return a.id < b.id; });
    for (StripeSet& set : content_.sets) Weigh(set);
  }

 private:
  void CountWanted(uint32_t sets_per_target) {
    uint64_t capacity = 0;
    uint64_t count = 0;
    for (uint32_t i = 0; i < table_.size(); ++i) {
      if (!table_.at(i).writable()) continue;
      capacity += table_.at(i).capacity >> 20;
      ++count;
    }
    std::set<uint64_t> domains;
    for (uint32_t i = 0; i < table_.size(); ++i) {
      if (!table_.at(i).writable()) continue;
      const uint64_t share = (table_.at(i).capacity >> 20) * count * sets_per_target;
      const uint64_t rounded = capacity == 0 ? 1 : (share + capacity / 2) / capacity;
      wanted_[i] = std::clamp<uint64_t>(rounded, 1, kSetsOfLargestTarget * sets_per_target);
      domains.insert(table_.domain(i));
    }
    width_ = std::min(content_.shape.set_width(), static_cast<uint32_t>(domains.size()));
    for (const StripeSet& set : content_.sets) {
      if (!IsNarrow(set)) Count(set, 1);
    }
    for (uint32_t i = 0; i < table_.size(); ++i) {
      if (wanted_[i] > 0) finder_.Offer(i, memberships_[i] * kLoadUnit / wanted_[i]);
    }
  }

  bool IsNarrow(const StripeSet& set) const { return set.targets.size() < width_; }

  void Count(const StripeSet& set, int64_t by) {
    for (const TargetId id : set.targets) {
      const uint32_t target = table_.Find(id);
      if (target != kNowhere) Count(target, by);
    }
  }
  void Count(uint32_t target, int64_t by) {
    memberships_[target] += static_cast<uint64_t>(by);
    if (!finder_.offers(target)) return;
    finder_.Offer(target, memberships_[target] * kLoadUnit / wanted_[target]);
  }

  // The other targets of the set, but for those that are to leave it.
  std::vector<uint32_t> Staying(const StripeSet& set) const {
    std::vector<uint32_t> staying;
    for (const TargetId id : set.targets) {
      const uint32_t target = table_.Find(id);
      if (target == kNowhere || !table_.Stays(id)) continue;
      const bool apart = std::none_of(staying.begin(), staying.end(), [&](uint32_t other) {
        return table_.domain(other) == table_.domain(target);
      });
      if (apart) staying.push_back(target);
    }
    return staying;
  }

  void Mend(StripeSet& set) {
    std::vector<uint32_t> staying = Staying(set);
    if (staying.size() == set.targets.size()) return;
    std::vector<TargetId> mended;
    for (const TargetId id : set.targets) {
      const uint32_t target = table_.Find(id);
      if (std::find(staying.begin(), staying.end(), target) != staying.end()) {
        mended.push_back(id);
        continue;
      }
      const uint32_t other = finder_.Find(staying);
      if (other == kNowhere) {
        if (MayLinger(target, staying)) mended.push_back(id);
        continue;
      }
      if (target != kNowhere && !IsNarrow(set)) Count(target, -1);
      if (!IsNarrow(set)) Count(other, 1);
      staying.push_back(other);
      mended.push_back(table_.at(other).id);
    }
    set.targets = std::move(mended);
  }

  // Whether a target without a successor keeps its place, for when it comes back.
  bool MayLinger(uint32_t target, const std::vector<uint32_t>& staying) const {
    if (target == kNowhere) return false;
    return std::none_of(staying.begin(), staying.end(), [&](uint32_t other) {
      return table_.domain(other) == table_.domain(target);
    });
  }

  // Their memberships do not count: wider ones take their place.
  void RetireNarrow() {
    if (width_ <= content_.shape.parity_shards) return;
    std::erase_if(content_.sets, [this](const StripeSet& set) { return IsNarrow(set); });
  }

  bool AddMissing() {
    if (width_ <= content_.shape.parity_shards) return false;
    const size_t before = content_.sets.size();
    std::set<std::vector<TargetId>> known;
    std::vector<bool> used_ids(kStripeSetsMax);
    for (const StripeSet& set : content_.sets) {
      known.insert(Sorted(set.targets));
      used_ids[set.id] = true;
    }
    std::vector<bool> blocked(table_.size());  // Only sets that there are already would come of it.
    bool any_blocked = false;
    uint32_t id = 0;
    while (content_.sets.size() < kStripeSetsMax) {
      const uint32_t seed = finder_.First([&](uint32_t target) { return !blocked[target]; });
      if (seed == kNowhere || memberships_[seed] >= wanted_[seed]) break;
      std::vector<TargetId> targets = Gather(seed);
      if (targets.size() < width_ || !known.insert(Sorted(targets)).second) {
        any_blocked = blocked[seed] = true;
        continue;
      }
      while (used_ids[id]) ++id;
      used_ids[id] = true;
      content_.sets.push_back({.id = id, .targets = std::move(targets)});
      Count(content_.sets.back(), 1);
      if (any_blocked) blocked.assign(table_.size(), false);  // Others fit together now.
      any_blocked = false;
    }
    return content_.sets.size() != before;
  }

  std::vector<TargetId> Gather(uint32_t seed) const {
    std::vector<uint32_t> gathered{seed};
    while (gathered.size() < width_) {
      const uint32_t next = finder_.Find(gathered);
      if (next == kNowhere) break;
      gathered.push_back(next);
    }
    std::vector<TargetId> targets;
    for (const uint32_t target : gathered) targets.push_back(table_.at(target).id);
    return targets;
  }

  static std::vector<TargetId> Sorted(std::vector<TargetId> targets) {
    std::sort(targets.begin(), targets.end());
    return targets;
  }

  // Not while somebody starts slowly: the sets of old targets with new ones take little yet.
  bool RetireSurplus() {
    for (uint32_t i = 0; i < table_.size(); ++i) {
      if (finder_.offers(i) && table_.at(i).weight_percent < kWeightFull) return false;
    }
    const size_t retired = std::erase_if(content_.sets, [this](const StripeSet& set) {
      for (const TargetId id : set.targets) {
        const uint32_t target = table_.Find(id);
        if (!finder_.offers(target) || memberships_[target] <= wanted_[target]) return false;
      }
      Count(set, -1);
      return true;
    });
    return retired > 0;
  }

  // A target divides what it takes evenly among its sets; a set gets what its weakest has for it.
  void Weigh(StripeSet& set) const {
    uint64_t weight = UINT64_MAX;
    uint32_t writable = 0;
    for (const TargetId id : set.targets) {
      const uint32_t target = table_.Find(id);
      const TargetEntry& entry = table_.at(target);
      if (!entry.writable()) continue;
      ++writable;
      const uint64_t offered = (entry.capacity >> 20) * entry.weight_percent / kWeightFull;
      weight = std::min(weight, offered / std::max<uint64_t>(1, memberships_[target]));
    }
    const bool takes_puts = writable > content_.shape.parity_shards;
    const uint64_t mebibytes = std::clamp<uint64_t>(weight, 1, UINT32_MAX);
    set.weight = takes_puts ? static_cast<uint32_t>(mebibytes) : 0;
  }

  MapContent& content_;
  const TargetTable table_;
  PlaceFinder finder_;
  uint32_t width_ = 0;
  std::vector<uint64_t> wanted_;
  std::vector<uint64_t> memberships_;
};

}  // namespace

void PlanSets(MapContent& content, const SetPlanOptions& options) {
  SetPlanner(content, options).Plan();
}

}  // namespace cairn::kv
