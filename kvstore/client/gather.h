// The bytes of a block to put, which may lie in several pieces of memory, one after another.
#pragma once

#include <span>

#include "kvstore/client/block_store.h"

namespace cairn::kv {

using Parts = std::span<const ByteSpan>;

// Those of `gather`, or else `bytes` alone. Holds as long as `block`.
inline Parts PartsOf(const BlockWrite& block) {
  if (block.gather.empty()) return {&block.bytes, 1};
  return block.gather;
}
uint64_t SizeOf(const BlockWrite& block);

// XXH3-64 of bytes [offset, offset + size).
uint64_t ChecksumOf(Parts parts, uint64_t offset, uint64_t size);

// visit(offset in the block, bytes) for what lies in [begin, end), in order.
template <typename Visit>
void ForEachPartIn(Parts parts, uint64_t begin, uint64_t end, Visit visit) {
  uint64_t at = 0;
  for (const ByteSpan part : parts) {
    const uint64_t from = begin > at ? begin - at : 0;
    const uint64_t to = end - at < part.size() ? end - at : part.size();
    if (from < to) visit(at + from, part.subspan(from, to - from));
    at += part.size();
    if (at >= end) return;
  }
}

}  // namespace cairn::kv
