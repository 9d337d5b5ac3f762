// Through OpenSSL.
#include "kvstore/base/hmac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace cairn::kv {

Sha256Digest HmacSha256(ByteSpan key, ByteSpan bytes) {
  Sha256Digest digest{};
  unsigned size = 0;
  // An empty key is one, but must not be a null pointer.
  const auto* secret = key.empty() ? reinterpret_cast<const uint8_t*>("") : key.data();
  KV_CHECK(HMAC(EVP_sha256(), secret, static_cast<int>(key.size()), bytes.data(), bytes.size(),
                digest.data(), &size) != nullptr);
  KV_CHECK(size == digest.size());
  return digest;
}

bool SameSecret(ByteSpan a, ByteSpan b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace cairn::kv
