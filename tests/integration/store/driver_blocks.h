// What the driver stores: ids, chains and bytes that follow from a seed and a number.
#pragma once

#include <cstdint>
#include <vector>

#include "kvstore/base/bytes.h"
#include "kvstore/base/random.h"
#include "kvstore/types/ids.h"

namespace cairn::kv {

inline constexpr uint64_t kChainBlocks = 32;

// Block n belongs to chain n / 32.
inline BlockId DriverId(uint64_t seed, uint64_t n) {
  Random random(seed * 1'000'003 + n);
  BlockId id;
  id.high = random.Next();
  id.low = random.Next();
  return id;
}

// From the chain's first block up to block n.
inline std::vector<BlockId> DriverChain(uint64_t seed, uint64_t n) {
  std::vector<BlockId> chain;
  for (uint64_t i = n - n % kChainBlocks; i <= n; ++i) chain.push_back(DriverId(seed, i));
  return chain;
}

// Half of the blocks are small, one in ten takes up to 1.5 MB.
inline Bytes DriverBytes(uint64_t seed, uint64_t n) {
  Random random(seed * 7 + n);
  const uint64_t kind = random.Below(10);
  const uint64_t size = 1 + random.Below(kind < 5 ? 8'000 : kind < 9 ? 200'000 : 1'500'000);
  Bytes bytes(size);
  random.Fill(bytes.span());
  return bytes;
}

}  // namespace cairn::kv
