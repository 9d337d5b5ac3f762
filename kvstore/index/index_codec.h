// Keys and small records of the index, as bytes (docs/formats/index.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kvstore/base/result.h"
#include "kvstore/types/ids.h"
#include "kvstore/types/manifest.h"
#include "kvstore/types/space_token.h"

namespace cairn::kv {

// What reclaim and expiry need of a stripe, without its manifest. Seconds are since 1970.
struct StripeState {
  NamespaceId space;
  UnixMillis expires_at;
  uint32_t last_access = 0;    // Seconds.
  uint32_t keep_until = 0;     // Seconds: not evicted before. 0: as any other.
  uint32_t position = 0;       // Of its first block in the chain: suffixes are evicted first.
  uint32_t ttl_seconds = 0;
  uint32_t payload_bytes = 0;  // Of its blocks, each in whole sectors. 0: an older record.
  RetentionKind kind = RetentionKind::kRefreshed;
  bool hit = false;  // Used since it was put: it has a StripeUse.
  auto operator<=>(const StripeState&) const = default;
};

// As it was when filed, under the run that it is filed under.
struct StripeRecord {
  RunId run;
  StripeState state;
  auto operator<=>(const StripeRecord&) const = default;
};

// What hits change of it. Each field only ever grows.
struct StripeUse {
  UnixMillis expires_at;
  uint32_t last_access = 0;  // Seconds since 1970, as keep_until.
  uint32_t keep_until = 0;
  auto operator<=>(const StripeUse&) const = default;
};

// Where a stripe's manifest is filed.
struct StripeName {
  NamespaceId space;
  RunId run;
  StripeId stripe;
  auto operator<=>(const StripeName&) const = default;
};

inline constexpr std::string_view kManifestPrefix = "im/";
inline constexpr std::string_view kStatePrefix = "it/";
inline constexpr std::string_view kUsePrefix = "iu/";
inline constexpr std::string_view kRemovalPrefix = "ir/";    // Deleted while a target was away.
inline constexpr std::string_view kSpacePrefix = "in/";      // Living ones, by name.
inline constexpr std::string_view kTombstonePrefix = "ix/";  // Deleted ones, by id.

std::string SpaceManifestPrefix(const NamespaceId& space);
std::string RunPrefix(const NamespaceId& space, const RunId& run);
std::string ManifestKey(const StripeName& name);
std::string StateKey(const StripeId& stripe);
std::string UseKey(const StripeId& stripe);
std::string RemovalKey(const StripeId& stripe);
// Of a state, use or removal key; nothing when `key` is none of these.
std::optional<StripeId> StripeOfKey(std::string_view key);

std::string EncodeRecord(const StripeRecord& record);
// Of this version or of version 1. kCorrupt when the length or the version is wrong.
Result<StripeRecord> DecodeRecord(std::string_view bytes);

std::string EncodeUse(const StripeUse& use);
Result<StripeUse> DecodeUse(std::string_view bytes);

// A namespace as registered, or the tombstone of one: then only id, name and times count.
struct SpaceRecord {
  NamespaceId id;
  std::string name;
  std::string fingerprint;
  uint8_t data_shards = 0;
  uint8_t parity_shards = 0;
  uint32_t run_blocks = 0;
  RetentionKind retention = RetentionKind::kRefreshed;
  uint32_t ttl_seconds = 0;
  bool in_memory = false;
  uint64_t quota_bytes = 0;  // 0: none.
  UnixMillis created_at = {};     // 0: an older record.
  UnixMillis deleted_at = {};     // 0: it lives.
  std::optional<StoredKey> token_key = {};
  auto operator<=>(const SpaceRecord&) const = default;
};

std::string SpaceKey(std::string_view name);
std::string TombstoneKey(const NamespaceId& space);
std::string EncodeSpace(const SpaceRecord& record);
// Of this version or of an earlier one. kCorrupt when the length or the version is wrong.
Result<SpaceRecord> DecodeSpace(std::string_view bytes);

}  // namespace cairn::kv
