// Duties from the map, successors from the stripe sets, and who may be forgotten.
#include "kvstore/control/repair_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "kvstore/base/checksum.h"
#include "kvstore/control/target_table.h"

namespace cairn::kv {
namespace {

// Among all targets, this many are looked at for one that fits.
constexpr size_t kTriesMax = 4096;

size_t CommonTargets(const StripeSet& set, std::span<const TargetId> stripe) {
  size_t common = 0;
  for (const TargetId id : set.targets) {
    common += std::find(stripe.begin(), stripe.end(), id) != stripe.end() ? 1 : 0;
  }
  return common;
}

// For each home, the epoch since which it has been home of all its present groups.
std::map<NodeId, uint64_t> HomesSince(const MapContent& content, const TargetTable& table) {
  std::map<NodeId, uint64_t> since;
  for (const Group& group : content.groups) {
    const uint32_t first = table.Find(group.targets[0]);
    const NodeId home = first != kNowhere ? table.at(first).node : kNoNode;
    uint64_t& latest = since[home];
    latest = std::max(latest, group.since);
  }
  return since;
}

// What all homes together say of targets.
class Verdicts {
 public:
  Verdicts(const MapContent& content, std::span<const VacatedReport> reports)
      : homes_(HomesSince(content, TargetTable(content))) {
    for (const VacatedReport& report : reports) {
      uint64_t& epoch = said_[{report.target, report.node}];
      epoch = std::max(epoch, report.epoch);
    }
  }

  // Each home has said so since the target was last changed, and since it has its groups.
  bool IsVacated(const TargetEntry& target) const {
    return std::all_of(homes_.begin(), homes_.end(), [&](const auto& home) {
      const auto found = said_.find({target.id, home.first});
      return found != said_.end() && found->second >= std::max(home.second, target.since);
    });
  }

 private:
  std::map<std::pair<TargetId, NodeId>, uint64_t> said_;
  const std::map<NodeId, uint64_t> homes_;  // Since when each is home of all its groups.
};

}  // namespace

RepairDuty DutyOf(const ClusterMap& map, NodeId node, uint64_t target_rate) {
  RepairDuty duty;
  std::vector<const TargetEntry*> lost;
  uint64_t living = 0;
  for (const TargetEntry& target : map.targets()) {
    living += target.state == MemberState::kUp ? 1 : 0;
    if (target.state == MemberState::kLost) {
      lost.push_back(&target);
    } else if (target.draining) {
      duty.copy.push_back(target.id);
    }
  }
  std::sort(lost.begin(), lost.end(), [](const TargetEntry* a, const TargetEntry* b) {
    return std::pair(a->since, a->id) < std::pair(b->since, b->id);
  });
  for (const TargetEntry* target : lost) duty.rebuild.push_back(target->id);
  for (uint32_t i = 0; i < map.groups().size(); ++i) {
    if (map.HomeOf(map.groups()[i]) == node) duty.groups.push_back(i);
  }
  if (duty.groups.empty() || (duty.rebuild.empty() && duty.copy.empty())) return duty;
  const uint64_t share = living * target_rate * duty.groups.size() / map.groups().size();
  duty.bytes_per_second = std::max<uint64_t>(share, 1);
  return duty;
}

Successors::Successors(const ClusterMap& map) : map_(map) {
  for (const StripeSet& set : map.sets()) {
    for (const TargetId id : set.targets) sets_.emplace(id, &set);
  }
}

bool Successors::Fits(TargetId candidate, std::span<const TargetId> stripe,
                      TargetId leaving) const {
  const TargetEntry* entry = map_.FindTarget(candidate);
  if (entry == nullptr || !entry->writable()) return false;
  for (const TargetId id : stripe) {
    const TargetEntry* other = map_.FindTarget(id);
    if (id == candidate) return false;
    if (id == leaving || other == nullptr) continue;
    if (DomainOf(map_.shape(), *other) == DomainOf(map_.shape(), *entry)) return false;
  }
  return true;
}

TargetId Successors::InSets(std::span<const TargetId> stripe, TargetId leaving) const {
  size_t most = 1;  // One in common is chance.
  TargetId best = kNoTarget;
  for (const TargetId id : stripe) {
    const auto [begin, end] = sets_.equal_range(id);
    for (auto at = begin; at != end; ++at) {
      const size_t common = CommonTargets(*at->second, stripe);
      if (common <= most) continue;
      const auto& targets = at->second->targets;
      const auto free = std::find_if(targets.begin(), targets.end(), [&](TargetId candidate) {
        return Fits(candidate, stripe, leaving);
      });
      if (free == targets.end()) continue;
      most = common;
      best = *free;
    }
  }
  return best;
}

TargetId Successors::Of(std::span<const TargetId> stripe, TargetId leaving) const {
  const TargetId in_sets = InSets(stripe, leaving);
  if (in_sets != kNoTarget || map_.targets().empty()) return in_sets;
  // No such set: any that fits, another one for each stripe.
  std::vector<uint64_t> words;
  for (const TargetId id : stripe) words.push_back(id.value);
  const auto* bytes = reinterpret_cast<const uint8_t*>(words.data());
  const uint64_t begin = Checksum({bytes, words.size() * sizeof(uint64_t)});
  const size_t count = map_.targets().size();
  for (size_t i = 0; i < std::min(count, kTriesMax); ++i) {
    const TargetId candidate = map_.targets()[(begin + i) % count].id;
    if (Fits(candidate, stripe, leaving)) return candidate;
  }
  return kNoTarget;
}

void ForgetVacated(MapContent& content, std::span<const VacatedReport> reports) {
  if (reports.empty()) return;
  const Verdicts verdicts(content, reports);
  std::erase_if(content.targets, [&](const TargetEntry& target) {
    return target.state == MemberState::kLost && verdicts.IsVacated(target);
  });
}

std::vector<TargetId> VacatedTargets(const MapContent& content,
                                     std::span<const VacatedReport> reports) {
  const Verdicts verdicts(content, reports);
  std::set<TargetId> in_groups;
  for (const Group& group : content.groups) {
    if (group.filling != 0) return {};  // Whose place it was is not known.
    in_groups.insert(group.targets.begin(), group.targets.end());
  }
  std::vector<TargetId> vacated;
  for (const TargetEntry& target : content.targets) {
    const bool leaving = target.draining || target.state == MemberState::kLost;
    if (!leaving || in_groups.contains(target.id) || !verdicts.IsVacated(target)) continue;
    vacated.push_back(target.id);
  }
  std::sort(vacated.begin(), vacated.end());
  return vacated;
}

}  // namespace cairn::kv
