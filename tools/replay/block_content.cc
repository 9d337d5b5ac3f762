// A SplitMix64 stream that starts at the block's id.
#include "tools/replay/block_content.h"

#include <algorithm>
#include <cstring>

namespace cairn::tools {
namespace {

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Calls visit(offset, word bytes, count) over `size` bytes until it returns false.
template <typename Visit>
void ForEachWord(uint64_t block, size_t size, const Visit& visit) {
  uint64_t state = Mix(block + 1);
  for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
    state += 0x9e3779b97f4a7c15;
    const uint64_t word = Mix(state);
    if (!visit(at, word, std::min(sizeof(word), size - at))) return;
  }
}

}  // namespace

void FillBlock(uint64_t block, kv::MutableByteSpan into) {
  ForEachWord(block, into.size(), [&](size_t at, uint64_t word, size_t count) {
    std::memcpy(into.data() + at, &word, count);
    return true;
  });
}

std::optional<size_t> FirstWrongByte(uint64_t block, kv::ByteSpan bytes) {
  std::optional<size_t> wrong;
  ForEachWord(block, bytes.size(), [&](size_t at, uint64_t word, size_t count) {
    if (std::memcmp(bytes.data() + at, &word, count) == 0) return true;
    const auto* expected = reinterpret_cast<const uint8_t*>(&word);
    size_t i = 0;
    while (bytes[at + i] == expected[i]) ++i;
    wrong = at + i;
    return false;
  });
  return wrong;
}

}  // namespace cairn::tools
