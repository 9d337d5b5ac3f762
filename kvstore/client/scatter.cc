// Walks the segments once, front to back.
#include "kvstore/client/scatter.h"

#include "kvstore/base/checksum.h"

namespace cairn::kv {

uint64_t SizeOf(Segments segments) {
  uint64_t size = 0;
  for (const MutableByteSpan& segment : segments) size += segment.size();
  return size;
}

void Scatter(ByteSpan from, Segments segments) {
  ForEachPart(segments, from.size(), [&](uint64_t offset, MutableByteSpan part) {
    std::memcpy(part.data(), from.data() + offset, part.size());
  });
}

uint64_t ChecksumOf(Segments segments, uint64_t size) {
  if (segments.size() == 1) return Checksum(segments[0].first(size));
  ChecksumStream sum;
  ForEachPart(segments, size, [&](uint64_t, MutableByteSpan part) { sum.Add(part); });
  return sum.Digest();
}

}  // namespace cairn::kv
