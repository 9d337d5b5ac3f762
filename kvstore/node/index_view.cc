// Walks the replicas' records; reads manifests only of what has to be copied.
#include "kvstore/node/index_view.h"

#include <algorithm>

#include "kvstore/client/target_choice.h"
#include "kvstore/types/limits.h"

namespace cairn::kv {
namespace {

constexpr size_t kNamesAtOnce = 1024;

LocalTarget* Find(const LocalTargets& targets, TargetId id) {
  for (const auto& target : targets) {
    if (target->id() == id) return target.get();
  }
  return nullptr;
}

// The replicas that should have the stripe and do not.
std::vector<LocalTarget*> MissingAt(const LocalTargets& targets, const std::vector<TargetId>& ids,
                                    const StripeName& name) {
  std::vector<TargetId> order = ReplicaOrder(name.space, name.run, ids);
  order.resize(std::min<size_t>(order.size(), kIndexReplicas));
  std::vector<LocalTarget*> missing;
  for (const TargetId id : order) {
    LocalTarget* target = Find(targets, id);
    if (!target->MayHaveFiled(name.stripe)) missing.push_back(target);
  }
  return missing;
}

Task<Status> CopyStripe(const LocalTargets& targets, LocalTarget& from, StripeId stripe,
                        std::vector<LocalTarget*> to, uint64_t& filed) {
  const auto indexed = co_await from.ReadFiled(stripe);
  if (indexed.code() == Code::kNotFound) co_return Status();  // Withdrawn meanwhile.
  if (!indexed.ok()) co_return indexed.status();
  const Manifest& manifest = indexed.value().manifest;
  if (ShardsAtHand(targets, manifest) < manifest.data_shards) co_return Status();
  for (LocalTarget* target : to) {
    KV_CO_RETURN_IF_ERROR(co_await target->Publish(indexed.value(), Durability::kProcess));
    ++filed;
  }
  co_return Status();
}

}  // namespace

Task<Status> RemoveStripe(StripeIndex& index, StripeId stripe, MissReason reason) {
  const auto name = co_await index.NameOf(stripe);
  if (name.ok()) co_return co_await index.Remove(name.value(), reason);
  if (name.code() != Code::kNotFound) co_return name.status();
  const StripeName shards_only{.space = {}, .run = {}, .stripe = stripe};
  co_return co_await index.Remove(shards_only, MissReason::kAbsent);
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

Task<Status> RepairIndex(const LocalTargets& targets, uint64_t& filed) {
  std::vector<TargetId> ids;
  for (const auto& target : targets) ids.push_back(target->id());
  std::sort(ids.begin(), ids.end());
  Status outcome;
  for (const auto& target : targets) {
    std::optional<StripeId> after;
    bool more = true;
    while (more) {
      auto page = co_await target->index().ListNames(after, kNamesAtOnce);
      if (!page.ok()) {
        outcome = page.status();
        break;
      }
      for (const StripeName& name : page.value().names) {
        const std::vector<LocalTarget*> missing = MissingAt(targets, ids, name);
        if (missing.empty()) continue;
        Status copied = co_await CopyStripe(targets, *target, name.stripe, missing, filed);
        if (!copied.ok()) outcome = std::move(copied);
      }
      after = page.value().next;
      more = after.has_value();
    }
  }
  co_return outcome;
}

}  // namespace cairn::kv
