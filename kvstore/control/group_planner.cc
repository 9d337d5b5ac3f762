// First what must move, then what should, then who leads.
#include "kvstore/control/group_planner.h"

#include <algorithm>
#include <optional>

#include "kvstore/control/target_table.h"

namespace cairn::kv {
namespace {

// A difference in places, or in homes, that is left as it is: this part of the mean, or two.
constexpr uint64_t kPlacesSlack = 8;
constexpr uint64_t kHomesSlack = 4;
constexpr uint64_t kSlackMin = 2;
constexpr uint32_t kHomePassesMax = 8;

// Takes part in the cluster, but is to hold no part of the index.
bool IsLeaving(const TargetEntry& target, const std::set<TargetId>& slow) {
  return target.draining || slow.contains(target.id);
}

bool MayHold(const TargetEntry& target, const std::set<TargetId>& slow) {
  return target.writable() && !IsLeaving(target, slow);
}

class PlacePlanner {
 public:
  PlacePlanner(MapContent& content, const GroupPlanOptions& options,
               const std::set<TargetId>& slow)
      : content_(content), slow_(slow), table_(content), finder_(table_, kIndexReplicas),
        places_(table_.size()),
        moving_max_(content.groups.size() * options.moving_percent_max / 100 + 1) {
    for (const Group& group : content_.groups) {
      for (const TargetId id : group.targets) {
        const uint32_t target = table_.Find(id);
        if (target != kNowhere) ++places_[target];
      }
    }
    for (uint32_t i = 0; i < table_.size(); ++i) {
      if (!MayHold(table_.at(i), slow_)) continue;
      finder_.Offer(i, places_[i]);
      ++offered_;
    }
  }

  void Plan() {
    for (Group& group : content_.groups) Mend(group);
    for (Group& group : content_.groups) Empty(group);
    Even();
  }

 private:
  // Places whose target is not to be replaced now, but for `place`.
  std::vector<uint32_t> Others(const Group& group, size_t place) const {
    std::vector<uint32_t> others;
    for (size_t i = 0; i < kIndexReplicas; ++i) {
      const uint32_t target = table_.Find(group.targets[i]);
      if (i != place && target != kNowhere) others.push_back(target);
    }
    return others;
  }

  // A place without a target, with a lost one, or with one in the domain of an earlier place.
  bool MustChange(const Group& group, size_t place) const {
    const uint32_t target = table_.Find(group.targets[place]);
    if (target == kNowhere || table_.at(target).state == MemberState::kLost) return true;
    for (size_t i = 0; i < place; ++i) {
      const uint32_t earlier = table_.Find(group.targets[i]);
      if (earlier == kNowhere) continue;
      if (table_.domain(earlier) == table_.domain(target)) return true;
    }
    return false;
  }

  void Mend(Group& group) {
    const bool has_source = HasSource(group);
    for (size_t place = 0; place < kIndexReplicas; ++place) {
      if (!MustChange(group, place)) continue;
      const uint32_t successor = finder_.Find(Others(group, place));
      if (successor != kNowhere) {
        Move(group, place, successor);
      } else if (!MayLinger(group, place)) {
        group.targets[place] = kNoTarget;
        group.filling = static_cast<uint8_t>(group.filling & ~(1u << place));
      }
    }
    // Where nobody has anything, there is nothing to wait for.
    if (!has_source) group.filling = 0;
  }

  // Whether a target without a successor keeps its place, for when it comes back.
  bool MayLinger(const Group& group, size_t place) const {
    const uint32_t target = table_.Find(group.targets[place]);
    if (target == kNowhere) return false;
    const std::vector<uint32_t> others = Others(group, place);
    return std::none_of(others.begin(), others.end(), [&](uint32_t other) {
      return table_.domain(other) == table_.domain(target);
    });
  }

  void Empty(Group& group) {
    for (size_t place = 0; place < kIndexReplicas; ++place) {
      const uint32_t target = table_.Find(group.targets[place]);
      if (target == kNowhere || !IsLeaving(table_.at(target), slow_)) continue;
      if (OthersFilling(group, place)) continue;
      const uint32_t successor = finder_.Find(Others(group, place));
      if (successor != kNowhere) Move(group, place, successor);
    }
  }

  static bool OthersFilling(const Group& group, size_t place) {
    return (group.filling & ~(1u << place)) != 0;
  }

  void Move(Group& group, size_t place, uint32_t successor) {
    const uint32_t before = table_.Find(group.targets[place]);
    if (before != kNowhere) Count(before, -1);
    Count(successor, 1);
    group.targets[place] = table_.at(successor).id;
    group.filling = static_cast<uint8_t>(group.filling | 1u << place);
  }

  // Whether somebody who is not lost has all of it.
  bool HasSource(const Group& group) const {
    for (size_t i = 0; i < kIndexReplicas; ++i) {
      const uint32_t target = table_.Find(group.targets[i]);
      const bool lost = target == kNowhere || table_.at(target).state == MemberState::kLost;
      if (!lost && !group.IsFilling(i)) return true;
    }
    return false;
  }

  void Count(uint32_t target, int64_t by) {
    places_[target] += static_cast<uint64_t>(by);
    if (finder_.offers(target)) finder_.Offer(target, places_[target]);
  }

  // Moves single places from targets that have many to targets that have few.
  void Even() {
    if (offered_ == 0) return;
    const uint64_t mean = content_.groups.size() * kIndexReplicas / offered_;
    const uint64_t slack = std::max(kSlackMin, mean / kPlacesSlack);
    uint64_t moving = 0;
    for (const Group& group : content_.groups) moving += group.filling != 0 ? 1 : 0;
    for (Group& group : content_.groups) {
      if (moving >= moving_max_) return;
      if (group.filling == 0 && EvenOne(group, slack) && group.filling != 0) ++moving;
    }
  }

  bool EvenOne(Group& group, uint64_t slack) {
    size_t fullest = kIndexReplicas;
    for (size_t place = 0; place < kIndexReplicas; ++place) {
      const uint32_t target = table_.Find(group.targets[place]);
      if (target == kNowhere || !finder_.offers(target)) return false;  // One trouble at a time.
      const bool fuller = fullest == kIndexReplicas ||
                          places_[target] > places_[table_.Find(group.targets[fullest])];
      if (fuller) fullest = place;
    }
    const uint32_t from = table_.Find(group.targets[fullest]);
    const uint32_t to = finder_.Find(Others(group, fullest));
    if (to == kNowhere || places_[from] < places_[to] + slack) return false;
    Move(group, fullest, to);
    return true;
  }

  MapContent& content_;
  const std::set<TargetId>& slow_;
  const TargetTable table_;
  PlaceFinder finder_;
  std::vector<uint64_t> places_;
  const uint64_t moving_max_;
  uint64_t offered_ = 0;
};

// The home stands first: leaders change by swapping places, which moves nothing.
class HomePlanner {
 public:
  HomePlanner(MapContent& content, const std::set<TargetId>& slow)
      : content_(content), slow_(slow), table_(content), homes_(table_.size()) {
    for (const Group& group : content_.groups) {
      const uint32_t home = table_.Find(group.targets[0]);
      if (home != kNowhere) ++homes_[home];
    }
  }

  void Plan() {
    for (Group& group : content_.groups) Mend(group);
    Even();
  }

 private:
  // How well a place serves as home; 0: not at all.
  int Fitness(const Group& group, size_t place) const {
    const uint32_t target = table_.Find(group.targets[place]);
    if (target == kNowhere) return 0;
    const TargetEntry& entry = table_.at(target);
    const bool lives = entry.state == MemberState::kUp || entry.state == MemberState::kJoining;
    if (!lives) return group.IsFilling(place) || entry.state == MemberState::kLost ? 1 : 2;
    if (group.IsFilling(place)) return 3;
    if (entry.state == MemberState::kJoining) return 4;
    return IsLeaving(entry, slow_) ? 5 : 6;
  }

  uint64_t HomesOf(const Group& group, size_t place) const {
    const uint32_t target = table_.Find(group.targets[place]);
    return target != kNowhere ? homes_[target] : UINT64_MAX;
  }

  void Mend(Group& group) {
    size_t best = 0;
    for (size_t place = 1; place < kIndexReplicas; ++place) {
      const int fitness = Fitness(group, place);
      const bool fitter = fitness > Fitness(group, best);
      const bool idler = best != 0 && fitness == Fitness(group, best) &&
                         HomesOf(group, place) < HomesOf(group, best);
      if (fitter || idler) best = place;
    }
    if (best != 0) Swap(group, best);
  }

  void Even() {
    uint64_t up = 0;
    for (uint32_t i = 0; i < table_.size(); ++i) up += MayHold(table_.at(i), slow_) ? 1 : 0;
    if (up == 0) return;
    const uint64_t slack = std::max(kSlackMin, content_.groups.size() / up / kHomesSlack);
    for (uint32_t pass = 0; pass < kHomePassesMax; ++pass) {
      bool changed = false;
      for (Group& group : content_.groups) changed |= EvenOne(group, slack);
      if (!changed) return;
    }
  }

  bool EvenOne(Group& group, uint64_t slack) {
    size_t best = 0;
    for (size_t place = 1; place < kIndexReplicas; ++place) {
      const bool fit = Fitness(group, place) >= Fitness(group, 0);
      if (fit && HomesOf(group, place) < HomesOf(group, best)) best = place;
    }
    if (best == 0 || HomesOf(group, 0) < HomesOf(group, best) + slack) return false;
    Swap(group, best);
    return true;
  }

  void Swap(Group& group, size_t place) {
    const uint32_t before = table_.Find(group.targets[0]);
    const uint32_t after = table_.Find(group.targets[place]);
    if (before != kNowhere) --homes_[before];
    if (after != kNowhere) ++homes_[after];
    std::swap(group.targets[0], group.targets[place]);
    const unsigned first = group.filling & 1u;
    const unsigned other = group.filling >> place & 1u;
    const unsigned rest = group.filling & ~(1u | 1u << place);
    group.filling = static_cast<uint8_t>(rest | other | first << place);
  }

  MapContent& content_;
  const std::set<TargetId>& slow_;
  const TargetTable table_;
  std::vector<uint64_t> homes_;
};

}  // namespace

void MarkFilled(MapContent& content, std::span<const FilledPlace> filled) {
  for (const FilledPlace& mark : filled) {
    if (mark.group >= content.groups.size()) continue;
    Group& group = content.groups[mark.group];
    for (size_t place = 0; place < kIndexReplicas; ++place) {
      if (group.targets[place] != mark.target) continue;
      group.filling = static_cast<uint8_t>(group.filling & ~(1u << place));
    }
  }
}

void PlanGroups(MapContent& content, const GroupPlanOptions& options,
                const std::set<TargetId>& slow) {
  std::vector<TargetId> homes;
  for (const Group& group : content.groups) homes.push_back(group.targets[0]);
  PlacePlanner(content, options, slow).Plan();
  HomePlanner(content, slow).Plan();
  for (size_t i = 0; i < homes.size(); ++i) {
    Group& group = content.groups[i];
    if (group.targets[0] != homes[i]) group.since = content.epoch;
  }
}

}  // namespace cairn::kv
