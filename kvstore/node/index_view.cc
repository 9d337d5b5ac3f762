// Walks the replicas' tables in memory; reads manifests only of what has to be copied.
#include "kvstore/node/index_view.h"

#include <algorithm>

#include "kvstore/client/target_choice.h"
#include "kvstore/types/limits.h"

namespace cairn::kv {
namespace {

LocalTarget* Find(const LocalTargets& targets, TargetId id) {
  for (const auto& target : targets) {
    if (target->id() == id) return target.get();
  }
  return nullptr;
}

// The replicas that should have the stripe and do not.
std::vector<LocalTarget*> MissingAt(const LocalTargets& targets, const std::vector<TargetId>& ids,
                                    StripeId stripe, const StripeState& state) {
  std::vector<TargetId> order = ReplicaOrder(state.space, state.run, ids);
  order.resize(std::min<size_t>(order.size(), kIndexReplicas));
  std::vector<LocalTarget*> missing;
  for (const TargetId id : order) {
    LocalTarget* target = Find(targets, id);
    if (!target->MayHaveFiled(stripe)) missing.push_back(target);
  }
  return missing;
}

uint32_t ShardsAtHand(const LocalTargets& targets, const Manifest& manifest) {
  uint32_t count = 0;
  for (size_t i = 0; i < manifest.targets.size(); ++i) {
    const LocalTarget* target = Find(targets, manifest.targets[i]);
    const ShardIndex index{static_cast<uint8_t>(i)};
    if (target != nullptr && target->MayHold(manifest.stripe, index)) ++count;
  }
  return count;
}

Task<Status> CopyStripe(const LocalTargets& targets, LocalTarget& from, StripeId stripe,
                        StripeState state, std::vector<LocalTarget*> to, uint64_t& filed) {
  auto stripes = co_await from.LookUp(state.space, state.run);
  if (!stripes.ok()) co_return stripes.status();
  for (const IndexedStripe& indexed : stripes.value()) {
    if (indexed.manifest.stripe != stripe) continue;
    if (ShardsAtHand(targets, indexed.manifest) < indexed.manifest.data_shards) continue;
    for (LocalTarget* target : to) {
      KV_CO_RETURN_IF_ERROR(co_await target->Publish(indexed, Durability::kProcess));
      ++filed;
    }
  }
  co_return Status();
}

}  // namespace

std::optional<StripeState> FindState(const LocalTargets& targets, StripeId stripe) {
  std::optional<StripeState> best;
  for (const auto& target : targets) {
    const StripeState* state = target->index().Find(stripe);
    if (state == nullptr) continue;
    if (!best) {
      best = *state;
      continue;
    }
    best->expires_at = std::max(best->expires_at, state->expires_at);
    best->last_access = std::max(best->last_access, state->last_access);
    best->hit = best->hit || state->hit;
  }
  return best;
}

std::vector<StripeId> StripesOn(const LocalTarget& target) {
  std::vector<StripeId> stripes;
  for (const SegmentInfo& segment : target.log().segments()) {
    if (segment.state == SegmentInfo::State::kFree) continue;
    const std::vector<StripeId> held = target.log().StripesIn(segment.id);
    stripes.insert(stripes.end(), held.begin(), held.end());
  }
  return stripes;
}

Task<Status> RepairIndex(const LocalTargets& targets, uint64_t& filed) {
  std::vector<TargetId> ids;
  for (const auto& target : targets) ids.push_back(target->id());
  std::sort(ids.begin(), ids.end());
  Status outcome;
  for (const auto& target : targets) {
    // The table may change while we copy: go by ids.
    std::vector<StripeId> stripes;
    for (const auto& [stripe, state] : target->index().stripes()) {
      if (!MissingAt(targets, ids, stripe, state).empty()) stripes.push_back(stripe);
    }
    for (const StripeId& stripe : stripes) {
      const StripeState* state = target->index().Find(stripe);
      if (state == nullptr) continue;
      const StripeState copy = *state;
      const std::vector<LocalTarget*> missing = MissingAt(targets, ids, stripe, copy);
      if (missing.empty()) continue;
      Status copied = co_await CopyStripe(targets, *target, stripe, copy, missing, filed);
      if (!copied.ok()) outcome = std::move(copied);
    }
  }
  co_return outcome;
}

}  // namespace cairn::kv
