// Sorts the stripes by their last access; those that lack nothing cost a read of metadata.
#include "kvstore/node/repairer.h"

#include <algorithm>
#include <string>
#include <utility>

namespace cairn::kv {

Task<std::vector<StripeId>> Repairer::Plan() {
  uint64_t filed = 0;
  const Status indexed = co_await repair_index_(filed);
  if (!indexed.ok()) {
    parts_.log.Warning("repair: the index is not whole: " + indexed.ToString());
  }
  std::vector<std::pair<uint32_t, StripeId>> by_heat;
  for (const auto& [stripe, state] : AllStripes()) {
    by_heat.emplace_back(state.last_access, stripe);
  }
  std::sort(by_heat.begin(), by_heat.end(), std::greater<>());
  std::vector<StripeId> order;
  for (const auto& [last_access, stripe] : by_heat) order.push_back(stripe);
  co_return std::move(order);
}

bool Repairer::Wants(const StripeState& state) const {
  const UnixMillis now = parts_.clock.UnixNow();
  return state.expires_at.value - now.value > options_.skip_expiring_within.value / 1'000'000;
}

Task<RestoreReport> Repairer::Visit(FiledStripe stripe) {
  return parts_.restorer.Restore(std::move(stripe));
}

}  // namespace cairn::kv
