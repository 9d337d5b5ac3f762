// Bytes of one block in several pieces of memory, one after another.
#pragma once

#include <span>

#include "kvstore/base/bytes.h"

namespace cairn::kv {

using Segments = std::span<const MutableByteSpan>;

uint64_t SizeOf(Segments segments);
// Fills the segments in order until `from` is used up. They must have room for all of it.
void Scatter(ByteSpan from, Segments segments);
// XXH3-64 of the first `size` bytes that lie in the segments.
uint64_t ChecksumOf(Segments segments, uint64_t size);

// Calls visit(offset, part) for the part of each segment that lies within the first `size` bytes.
template <typename Visit>
void ForEachPart(Segments segments, uint64_t size, Visit visit) {
  uint64_t offset = 0;
  for (const MutableByteSpan& segment : segments) {
    if (offset == size) return;
    const uint64_t length = segment.size() < size - offset ? segment.size() : size - offset;
    if (length > 0) visit(offset, segment.first(length));
    offset += length;
  }
  KV_CHECK(offset == size);
}

}  // namespace cairn::kv
