// A network that remembers what memory it was told of.
#pragma once

#include <map>

#include "kvstore/io/payload_memory.h"

namespace cairn::testing {

class RecordedMemory final : public kv::PayloadMemory {
 public:
  bool Add(kv::MutableByteSpan memory) override {
    if (refuses) return false;
    ++added;
    return known.emplace(memory.data(), memory.size()).second;
  }
  void Remove(kv::MutableByteSpan memory) override {
    const auto found = known.find(memory.data());
    KV_CHECK(found != known.end() && found->second == memory.size());
    known.erase(found);
  }

  bool refuses = false;
  int added = 0;
  std::map<const uint8_t*, size_t> known;  // Sizes by where it begins.
};

}  // namespace cairn::testing
