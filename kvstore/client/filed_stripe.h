// A stripe as its replicas have it, taken together.
#pragma once

#include <algorithm>
#include <utility>

#include "kvstore/index/index_replica.h"

namespace cairn::kv {

struct FiledStripe {
  IndexedStripe stripe;  // With the manifest of the highest generation.
  bool uneven = false;   // Some replica has an older one.

  // What another replica has of it.
  void Merge(IndexedStripe other) {
    stripe.expires_at = std::max(stripe.expires_at, other.expires_at);
    stripe.keep_until = std::max(stripe.keep_until, other.keep_until);
    stripe.last_access = std::max(stripe.last_access, other.last_access);
    stripe.hit = stripe.hit || other.hit;
    if (stripe.manifest.generation == other.manifest.generation) return;
    uneven = true;
    if (stripe.manifest.generation < other.manifest.generation) {
      stripe.manifest = std::move(other.manifest);
    }
  }
};

}  // namespace cairn::kv
