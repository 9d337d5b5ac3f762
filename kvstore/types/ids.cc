// Makes identities from digests, and prints them.
#include "kvstore/types/ids.h"

#include <cstdio>

#include "kvstore/types/limits.h"

namespace cairn::kv {
namespace {

uint64_t BigEndian(const uint8_t* bytes) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | bytes[i];
  return value;
}

}  // namespace

Id128 Id128::FromDigest(const Sha256Digest& digest) {
  return {BigEndian(digest.data()), BigEndian(digest.data() + 8)};
}

std::string Id128::ToHex() const {
  char text[33];
  std::snprintf(text, sizeof(text), "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return text;
}

BlockId BlockIdOf(ByteSpan key) {
  KV_CHECK(!key.empty());
  KV_CHECK(key.size() <= kKeySizeMax);
  return {Id128::FromDigest(Sha256(key))};
}

BlockId BlockIdOfDigestKey(ByteSpan key) {
  KV_CHECK(key.size() >= 16);
  return {{BigEndian(key.data()), BigEndian(key.data() + 8)}};
}

}  // namespace cairn::kv
