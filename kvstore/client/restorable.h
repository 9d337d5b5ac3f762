// Which prefixes of a chain can be restored when not every block is needed for it. Pure.
//
// A layer with full attention needs all blocks of a prefix; one with a sliding window needs the
// last few. A model with both keeps them in a namespace each, looks up each with LookupEach, and
// asks here which lengths all of them can restore.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kvstore/client/block_store.h"

namespace cairn::kv {

// What one group of layers needs of a prefix.
struct GroupNeed {
  const EachHit* hit = nullptr;  // Of blocks [first, ...) of the chain.
  uint32_t first = 0;            // As given to LookupEach. Blocks before it count as missing.
  uint32_t window = 0;           // The last so many blocks of the prefix; 0: all of them.
};

// The lengths (in blocks, at least 1, ascending) of the prefixes that every group can restore.
// `chain_blocks` is the chain's length. No group at all restores nothing.
std::vector<uint32_t> RestorableLengths(std::span<const GroupNeed> groups, uint32_t chain_blocks);

// The longest of them; 0 when there is none.
uint32_t LongestRestorable(std::span<const GroupNeed> groups, uint32_t chain_blocks);

// Where LookupEach has to begin to see the last `n` blocks of a chain.
constexpr uint32_t FirstOfLast(uint32_t chain_blocks, uint32_t n) {
  return chain_blocks - (n < chain_blocks ? n : chain_blocks);
}

}  // namespace cairn::kv
