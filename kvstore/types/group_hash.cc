// Hashes the ids of a run, and draws those of its stripes.
#include "kvstore/types/group_hash.h"

#include <array>

#include "kvstore/base/checksum.h"

namespace cairn::kv {

uint16_t GroupHashOf(const NamespaceId& space, const RunId& run) {
  const std::array<uint64_t, 4> words{space.high, space.low, run.high, run.low};
  std::array<uint8_t, sizeof(words)> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(words[i / 8] >> (8 * (i % 8)));
  }
  return static_cast<uint16_t>(Checksum(bytes) >> 48);
}

StripeId DrawStripeId(const NamespaceId& space, const RunId& run, Random& random) {
  StripeId id;
  id.high = random.Next() >> 16 | uint64_t{GroupHashOf(space, run)} << 48;
  id.low = random.Next();
  return id;
}

}  // namespace cairn::kv
