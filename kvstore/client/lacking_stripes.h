// Stripes that were written with fewer shards than they should have, and are to be made whole.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "kvstore/types/ids.h"

namespace cairn::kv {

// A bounded memory: what it forgets, scrub and repair find. Not thread-safe.
class LackingStripes {
 public:
  static constexpr size_t kMax = 65'536;

  void Note(StripeId stripe) {
    if (stripes_.size() < kMax) stripes_.insert(stripe);
  }
  void Forget(StripeId stripe) { stripes_.erase(stripe); }
  size_t size() const { return stripes_.size(); }

  // At most `count`, each time the next ones.
  std::vector<StripeId> Next(size_t count) {
    std::vector<StripeId> next;
    count = std::min(count, stripes_.size());
    for (auto at = stripes_.upper_bound(last_); next.size() < count; ++at) {
      if (at == stripes_.end()) at = stripes_.begin();
      next.push_back(*at);
    }
    if (!next.empty()) last_ = next.back();
    return next;
  }
  // All, in pieces: none is noted any more.
  std::vector<StripeId> Take(size_t count) {
    const auto end = std::next(stripes_.begin(),
                               static_cast<ptrdiff_t>(std::min(count, stripes_.size())));
    std::vector<StripeId> taken(stripes_.begin(), end);
    stripes_.erase(stripes_.begin(), end);
    return taken;
  }

 private:
  std::set<StripeId> stripes_;
  StripeId last_ = {};
};

}  // namespace cairn::kv
