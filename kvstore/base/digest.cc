// SHA-256 through OpenSSL.
#include "kvstore/base/digest.h"

#include <openssl/evp.h>

namespace cairn::kv {

struct Sha256Stream::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256Stream::Sha256Stream() : context_(std::make_unique<Context>()) {
  KV_CHECK(context_->evp != nullptr);
  KV_CHECK(EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) == 1);
}
Sha256Stream::~Sha256Stream() = default;

void Sha256Stream::Add(ByteSpan piece) {
  KV_CHECK(EVP_DigestUpdate(context_->evp, piece.data(), piece.size()) == 1);
}

Sha256Digest Sha256Stream::Finish() {
  Sha256Digest digest{};
  KV_CHECK(EVP_DigestFinal_ex(context_->evp, digest.data(), nullptr) == 1);
  return digest;
}

Sha256Digest Sha256(ByteSpan bytes) {
  Sha256Stream stream;
  stream.Add(bytes);
  return stream.Finish();
}

}  // namespace cairn::kv
