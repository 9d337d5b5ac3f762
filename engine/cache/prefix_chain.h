// Tokens to block ids: each id is a hash over all tokens up to the end of its block.
//
//   key[0] = SHA-256("cairn.prefix.1" || tokens of block 0, 4 bytes each, little-endian)
//   key[i] = SHA-256(key[i-1] || tokens of block i)
// The block id is the key's first 128 bits. Model, dtype and layout are not in it: they are in the
// namespace's fingerprint. docs/formats/prefix-key.md has test vectors for other engines.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/api/token.h"
#include "kvstore/base/digest.h"
#include "kvstore/types/ids.h"

namespace cairn::engine {

// Grows with its sequence. Only full blocks have an id.
class PrefixChain {
 public:
  // `block_tokens` is at least 1.
  explicit PrefixChain(uint32_t block_tokens);

  // Appends ids for the blocks that `tokens` (the whole sequence so far) has filled since last
  // time. Tokens that were given before must not have changed.
  void Extend(std::span<const TokenId> tokens);

  const std::vector<kv::BlockId>& ids() const { return ids_; }

 private:
  const uint32_t block_tokens_;
  kv::Sha256Digest last_key_{};
  std::vector<kv::BlockId> ids_;
};

}  // namespace cairn::engine
