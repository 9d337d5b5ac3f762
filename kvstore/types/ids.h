// Identities: blocks, runs, stripes, namespaces, targets. Each its own type, none confusable.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

#include "kvstore/base/bytes.h"
#include "kvstore/base/digest.h"

namespace cairn::kv {

// 128 bits of a cryptographic digest, or 128 random bits. Equality is identity.
struct Id128 {
  uint64_t high = 0;
  uint64_t low = 0;
  auto operator<=>(const Id128&) const = default;

  // The first 16 bytes of `digest`, big-endian.
  static Id128 FromDigest(const Sha256Digest& digest);
  // 32 lower-case hex digits.
  std::string ToHex() const;
};

// A model, its layout and a tenant. Derived from name, tenant and layout fingerprint by SHA-256.
struct NamespaceId : Id128 {
  auto operator<=>(const NamespaceId&) const = default;
};

// One block inside its namespace: the digest of the caller's key.
struct BlockId : Id128 {
  auto operator<=>(const BlockId&) const = default;
};

// The id of the run's first block: block i of a chain belongs to the run led by i - i % run_blocks.
struct RunId : Id128 {
  auto operator<=>(const RunId&) const = default;
};

// Random, drawn anew for every stripe: never reused, so an old record cannot pass for a new one.
struct StripeId : Id128 {
  auto operator<=>(const StripeId&) const = default;
};

// Random, drawn when the target is formatted and kept in its superblock: a new disk has another.
struct TargetId {
  uint64_t value = 0;
  auto operator<=>(const TargetId&) const = default;
};

// Which piece of a stripe: 0..k'-1 are data, k'..k'+m-1 parity.
struct ShardIndex {
  uint8_t value = 0;
  auto operator<=>(const ShardIndex&) const = default;
};

// The digest of a caller's key. Keys are 1 to kKeySizeMax bytes.
BlockId BlockIdOf(ByteSpan key);
// The key's own first 16 bytes, for namespaces whose keys are cryptographic digests already.
BlockId BlockIdOfDigestKey(ByteSpan key);

// For hash tables. The bits are uniform already. Never iterate such a table where order matters.
struct IdHash {
  size_t operator()(const Id128& id) const { return static_cast<size_t>(id.low); }
};

}  // namespace cairn::kv
