// A chain of blocks with random ids and bytes, for tests of stores.
#pragma once

#include <vector>

#include "kvstore/base/bytes.h"
#include "kvstore/base/random.h"
#include "kvstore/types/ids.h"

namespace cairn::kv {

struct Chain {
  std::vector<BlockId> ids;
  std::vector<Bytes> bytes;  // Of each block.
};

inline Chain RandomChain(Random& random, size_t blocks, uint32_t size) {
  Chain chain;
  for (size_t i = 0; i < blocks; ++i) {
    const uint64_t high = random.Next();
    chain.ids.push_back(BlockId{{high, random.Next()}});
    chain.bytes.emplace_back(size);
    random.Fill(chain.bytes.back().span());
  }
  return chain;
}

}  // namespace cairn::kv
