// One walk over the states in memory finds them; each is withdrawn from its target alone.
#include "kvstore/cluster/former_replicas.h"

#include <algorithm>
#include <functional>
#include <string>

#include "kvstore/async/lanes.h"
#include "kvstore/types/group_hash.h"

namespace cairn::kv {
namespace {

constexpr uint64_t kDropsAtOnce = 16;

}  // namespace

// Not while a place is free or being filled: what is here may be needed yet.
bool FormerReplicas::IsFormer(StripeId stripe, TargetId target) const {
  const Group& group = map_.map()->GroupOf(GroupHashOf(stripe));
  return group.filling == 0 &&
         std::none_of(group.targets.begin(), group.targets.end(), [target](TargetId keeper) {
           return keeper == target || keeper == kNoTarget;
         });
}

Task<void> FormerReplicas::Attend(const Event& stopping) {
  const auto& groups = map_.map()->groups();
  if (std::equal(groups.begin(), groups.end(), seen_.begin(), seen_.end())) co_return;
  std::vector<Group> seen(groups.begin(), groups.end());
  uint64_t dropped = 0;
  Status outcome;
  for (const auto& target : own_) {
    std::vector<StripeId> former;
    const auto look = [&](StripeId stripe, const StripeState&) {
      if (IsFormer(stripe, target->id())) former.push_back(stripe);
      return true;
    };
    target->index().states().ForEachAfter(std::nullopt, look);
    const std::function<Task<Status>(uint64_t)> drop = [&](uint64_t i) {
      return Drop(*target, former[i], stopping, dropped);
    };
    Status done = co_await RunInLanes(former.size(), kDropsAtOnce, drop);
    if (!done.ok()) outcome = std::move(done);
  }
  if (dropped > 0) {
    log_.Info("index: dropped " + std::to_string(dropped) +
              " records of groups that other targets keep now");
  }
  if (outcome.ok()) seen_ = std::move(seen);
}

Task<Status> FormerReplicas::Drop(LocalTarget& target, StripeId stripe, const Event& stopping,
                                  uint64_t& dropped) {
  if (stopping.is_set()) co_return Status(Code::kUnavailable, "this node is stopping");
  const auto name = co_await target.NameOf(stripe);
  const bool is_none = name.code() == Code::kNotFound || name.code() == Code::kCorrupt;
  if (is_none || !IsFormer(stripe, target.id())) co_return Status();
  if (!name.ok()) co_return name.status();
  Status withdrawn = co_await target.Withdraw(name.value());
  dropped += withdrawn.ok() ? 1 : 0;
  co_return withdrawn;
}

}  // namespace cairn::kv
