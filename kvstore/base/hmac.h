// Proofs that one side knows a secret.
#pragma once

#include "kvstore/base/bytes.h"
#include "kvstore/base/digest.h"

namespace cairn::kv {

// HMAC (RFC 2104) with SHA-256: only who knows `key` can make it.
Sha256Digest HmacSha256(ByteSpan key, ByteSpan bytes);

// Takes as long for any two of one size, so that time tells nothing of where they differ.
bool SameSecret(ByteSpan a, ByteSpan b);

}  // namespace cairn::kv
