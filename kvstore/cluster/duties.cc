// One pass for all that is to be vacated.
#include "kvstore/cluster/duties.h"

#include <algorithm>
#include <utility>

#include "kvstore/control/repair_plan.h"

namespace cairn::kv {
namespace {

constexpr Nanos kPassEvery = Seconds(5);    // At most.
constexpr Nanos kRetryAfter = Seconds(60);  // Of a pass that could not do all.

}  // namespace

void Duties::Attend(const ClusterMap& map, Repairer& repairer) {
  const MaintenanceStatus& status = repairer.status();
  if (status.running) return;
  if (pass_.epoch != 0) Finish(repairer);
  std::erase_if(done_, [&](const auto& entry) { return map.FindTarget(entry.first) == nullptr; });
  if (clock_.Now() < not_before_) return;
  const RepairDuty duty = DutyOf(map, self_, bytes_per_second_);
  std::vector<TargetId> targets;
  for (const auto* list : {&duty.rebuild, &duty.copy}) {
    for (const TargetId target : *list) {
      const auto done = done_.find(target);
      if (done == done_.end() || done->second < NeededSince(map, target)) targets.push_back(target);
    }
  }
  if (targets.empty() || duty.groups.empty()) return;
  not_before_ = clock_.Now() + kPassEvery;
  if (!repairer.Start(bytes_per_second_).ok()) return;
  pass_ = {.epoch = map.epoch(), .passes = status.passes, .targets = std::move(targets)};
}

void Duties::Finish(const Repairer& repairer) {
  const MaintenanceStatus status = repairer.status();
  const Pass pass = std::exchange(pass_, {});
  if (status.passes == pass.passes || status.shards_failed > repairer.shards_lost()) {
    not_before_ = clock_.Now() + kRetryAfter;
    return;
  }
  for (const TargetId target : pass.targets) done_[target] = pass.epoch;
}

uint64_t Duties::NeededSince(const ClusterMap& map, TargetId target) const {
  const TargetEntry* entry = map.FindTarget(target);
  uint64_t since = entry == nullptr ? 0 : entry->since;
  for (const Group& group : map.groups()) {
    if (map.HomeOf(group) == self_) since = std::max(since, group.since);
  }
  return since;
}

std::vector<NodeWork::Vacated> Duties::vacated() const {
  std::vector<NodeWork::Vacated> vacated;
  for (const auto& [target, epoch] : done_) vacated.push_back({target, epoch});
  return vacated;
}

}  // namespace cairn::kv
