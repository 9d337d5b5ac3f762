// One part is hashed at once, several as a stream.
#include "kvstore/client/gather.h"

#include "kvstore/base/checksum.h"

namespace cairn::kv {

uint64_t SizeOf(const BlockWrite& block) {
  uint64_t size = 0;
  for (const ByteSpan part : PartsOf(block)) size += part.size();
  return size;
}

uint64_t ChecksumOf(Parts parts, uint64_t offset, uint64_t size) {
  if (parts.size() == 1) return Checksum(parts[0].subspan(offset, size));
  ChecksumStream stream;
  ForEachPartIn(parts, offset, offset + size, [&stream](uint64_t, ByteSpan part) {
    stream.Add(part);
  });
  return stream.Digest();
}

}  // namespace cairn::kv
