// XXH3-64, the one checksum of the store: fast, and not meant against an adversary.
#pragma once

#include <cstdint>

#include "kvstore/base/bytes.h"

namespace cairn::kv {

// XXH3 with a 64-bit digest and seed 0 (xxHash 0.8). Detects damage; never used as an identity.
uint64_t Checksum(ByteSpan bytes);

// The same digest over pieces that follow one another.
class ChecksumStream {
 public:
  ChecksumStream();
  ~ChecksumStream();
  ChecksumStream(const ChecksumStream&) = delete;
  ChecksumStream& operator=(const ChecksumStream&) = delete;

  void Add(ByteSpan piece);
  uint64_t Digest() const;

 private:
  struct State;
  State* state_;
};

}  // namespace cairn::kv
