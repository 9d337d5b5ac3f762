// One HMAC each for the client key and for its mask, as in SCRAM (RFC 5802).
#include "kvstore/types/space_token.h"

#include <string>

#include "kvstore/base/hmac.h"

namespace cairn::kv {
namespace {

constexpr std::string_view kKeyLabel = "cairn namespace token 1:";
constexpr std::string_view kProofLabel = "cairn attach 1:";

// What only who knows the token has. It is sent under a mask, and kept by nobody.
Sha256Digest ClientKeyOf(const SpaceToken& known) {
  const std::string said = std::string(kKeyLabel).append(known.name);
  return HmacSha256(AsBytes(known.token), AsBytes(said));
}

// Everything before the name has a fixed size: no two exchanges say the same.
Sha256Digest MaskOf(const StoredKey& key, std::string_view name, const TokenNonces& nonces) {
  std::string said(kProofLabel);
  said.append(AsText(nonces.server)).append(AsText(nonces.client)).append(name);
  return HmacSha256(key.digest, AsBytes(said));
}

Sha256Digest Masked(Sha256Digest digest, const Sha256Digest& mask) {
  for (size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<uint8_t>(digest[i] ^ mask[i]);
  }
  return digest;
}

}  // namespace

StoredKey StoredKeyOf(const SpaceToken& known) { return {Sha256(ClientKeyOf(known))}; }

TokenProof ProveToken(const SpaceToken& known, const TokenNonces& nonces) {
  const Sha256Digest mask = MaskOf(StoredKeyOf(known), known.name, nonces);
  return {.nonces = nonces, .answer = Masked(ClientKeyOf(known), mask)};
}

bool IsProven(const StoredKey& key, std::string_view name, const TokenProof& proof) {
  const Sha256Digest client_key = Masked(proof.answer, MaskOf(key, name, proof.nonces));
  return SameSecret(Sha256(client_key), key.digest);
}

}  // namespace cairn::kv
