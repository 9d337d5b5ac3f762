// In the order of the index: any order is as good on an SSD.
#include "kvstore/node/scrubber.h"

#include <utility>

namespace cairn::kv {

Task<std::vector<StripeId>> Scrubber::Plan() {
  std::vector<StripeId> order;
  for (const auto& [stripe, state] : AllStripes()) order.push_back(stripe);
  co_return std::move(order);
}

Task<RestoreReport> Scrubber::Visit(FiledStripe stripe) {
  return parts_.restorer.Scrub(std::move(stripe));
}

}  // namespace cairn::kv
