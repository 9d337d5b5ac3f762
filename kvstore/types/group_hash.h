// The 16 bits that a run shares with its stripes: they say which group of the index both are in.
#pragma once

#include <cstdint>

#include "kvstore/base/random.h"
#include "kvstore/types/ids.h"

namespace cairn::kv {

// The first 16 bits of the XXH3-64 over the ids of namespace and run, each as two little-endian
// words, high first.
uint16_t GroupHashOf(const NamespaceId& space, const RunId& run);

// Those of the stripe's run. Older stripes have random bits there, which one process may have.
inline uint16_t GroupHashOf(const StripeId& stripe) {
  return static_cast<uint16_t>(stripe.high >> 48);
}

// A new id for a stripe of the run: its group's hash, then 112 random bits.
StripeId DrawStripeId(const NamespaceId& space, const RunId& run, Random& random);

}  // namespace cairn::kv
