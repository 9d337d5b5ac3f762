// Touches: refresh blocks as a hit does, and promise to keep them.
#include <algorithm>
#include <map>
#include <utility>

#include "kvstore/client/striped_store.h"

namespace cairn::kv {

Task<std::vector<Status>> StripedStore::Touch(NamespaceId space, std::vector<BlockId> chain,
                                              uint32_t first, UnixMillis keep_until) {
  std::vector<size_t> places;
  for (size_t at = first; at < chain.size(); ++at) places.push_back(at);
  const SpaceRecord* known = FindSpace(space);
  Status refused;
  if (known == nullptr) {
    refused = spaces().WhyNot(space);
  } else {
    refused = CheckKeep(keep_until);
  }
  if (!refused.ok()) co_return std::vector<Status>(places.size(), refused);
  const SpaceRecord record = *known;
  co_return co_await TouchBlocks(record, std::move(chain), std::move(places),
                                 KeepSeconds(keep_until));
}

Status StripedStore::CheckKeep(UnixMillis keep_until) {
  if (keep_until.value >= 0 && keep_until.value / 1000 < UINT32_MAX) return Status();
  return Status(Code::kInvalid, "keep_until is not a time between 1970 and 2106");
}

// A promise may last a little longer, never shorter.
uint32_t StripedStore::KeepSeconds(UnixMillis keep_until) const {
  const auto seconds = static_cast<uint32_t>((keep_until.value + 999) / 1000);
  return seconds > NowSeconds() ? seconds : 0;
}

Task<std::vector<Status>> StripedStore::TouchBlocks(SpaceRecord space, std::vector<BlockId> chain,
                                                    std::vector<size_t> places,
                                                    uint32_t keep_until) {
  std::vector<Status> outcomes(places.size());
  std::map<StripeId, Status> kept;  // Each stripe is asked once.
  for (size_t begin = 0; begin < places.size();) {
    const size_t run_number = places[begin] / space.run_blocks;
    std::vector<BlockId> wanted;
    size_t end = begin;
    for (; end < places.size() && places[end] / space.run_blocks == run_number; ++end) {
      wanted.push_back(chain[places[end]]);
    }
    auto run = co_await parts_.index.Load(RunOf(space, chain, places[begin]), wanted);
    for (size_t i = begin; i < end; ++i) {
      if (!run.ok()) {
        outcomes[i] = run.status();
        continue;
      }
      const RunJudge::Answer answer = judge().Find(*run.value(), space.id, wanted[i - begin]);
      if (answer.place == nullptr) {
        const bool is_lost = answer.reason == MissReason::kUnavailable;
        outcomes[i] = Status(is_lost ? Code::kUnavailable : Code::kNotFound);
        continue;
      }
      const KnownStripePtr stripe = answer.place->stripe;
      parts_.index.Touch(*stripe);
      if (keep_until == 0) continue;
      const auto known = kept.find(stripe->manifest.stripe);
      if (known != kept.end()) {
        outcomes[i] = known->second;
        continue;
      }
      const KeepLimits limits = LimitsOf(space);
      outcomes[i] = co_await parts_.index.Keep(stripe, keep_until, limits);
      kept.emplace(stripe->manifest.stripe, outcomes[i]);
    }
    begin = end;
  }
  co_return outcomes;
}

}  // namespace cairn::kv
