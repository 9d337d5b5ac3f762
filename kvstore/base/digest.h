// SHA-256, for identities: what must be impossible to confuse, not merely unlikely.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "kvstore/base/bytes.h"

namespace cairn::kv {

using Sha256Digest = std::array<uint8_t, 32>;

Sha256Digest Sha256(ByteSpan bytes);

// The digest of pieces that follow one another (OpenSSL 3).
class Sha256Stream {
 public:
  Sha256Stream();
  ~Sha256Stream();
  void Add(ByteSpan piece);
  // Ends the stream: nothing may be added after it.
  Sha256Digest Finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace cairn::kv
