// Each stripe is asked for once, however many of the blocks it has.
#include "kvstore/client/whole_stripes.h"

#include <map>
#include <utility>
#include <vector>

namespace cairn::kv {

Task<std::set<StripeId>> FindWhole(const RunJudge& judge, const TargetSet& targets,
                                   KnownRunPtr run, NamespaceId space,
                                   std::span<const BlockId> wanted) {
  std::map<StripeId, KnownStripePtr> found;
  for (const BlockId& id : wanted) {
    const KnownRun::Place* place = judge.Find(*run, space, id).place;
    if (place != nullptr) found.emplace(place->stripe->manifest.stripe, place->stripe);
  }
  std::vector<std::pair<StripeId, Task<bool>>> calls;
  for (const auto& [id, stripe] : found) {
    calls.emplace_back(id, targets.IsWhole(stripe->manifest));
  }
  std::set<StripeId> whole;
  for (auto& [id, call] : calls) {
    const bool is_whole = co_await call;
    if (is_whole) whole.insert(id);
  }
  co_return std::move(whole);
}

}  // namespace cairn::kv
