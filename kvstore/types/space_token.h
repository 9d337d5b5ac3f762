// How a client proves that it knows a namespace's token, without telling it. Pure.
//
// docs/formats/wire.md, "Tokens", has the exchange in order, and
// docs/decisions/0007-namespace-generations.md why it is as it is.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "kvstore/base/digest.h"

namespace cairn::kv {

inline constexpr size_t kTokenSizeMax = 4096;

// A token, and the namespace that it is for: the name takes the place of a salt.
struct SpaceToken {
  std::string_view name;
  std::string_view token;
};

// What a namespace's record keeps of its token: enough to judge a proof, too little to make one.
struct StoredKey {
  Sha256Digest digest{};
  auto operator<=>(const StoredKey&) const = default;
};
StoredKey StoredKeyOf(const SpaceToken& known);

// What makes a proof good once only: each side draws one for it, from the kernel.
using TokenNonce = std::array<uint8_t, 32>;
struct TokenNonces {
  TokenNonce server{};
  TokenNonce client{};
};

struct TokenProof {
  TokenNonces nonces;
  Sha256Digest answer{};  // The client key, masked by what only who has the stored key can make.
  // For a namespace that may have to be created. Whoever overhears it together with an answer can
  // make proofs from then on.
  std::optional<StoredKey> new_key = {};
};
TokenProof ProveToken(const SpaceToken& known, const TokenNonces& nonces);
// Whether whoever made it knows the token of this namespace. Takes the same time for every answer.
bool IsProven(const StoredKey& key, std::string_view name, const TokenProof& proof);

}  // namespace cairn::kv
