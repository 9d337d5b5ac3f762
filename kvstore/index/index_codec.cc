// Little-endian records with a version byte; ids in keys are big-endian, so that they order.
#include "kvstore/index/index_codec.h"

#include "kvstore/base/checksum.h"

namespace cairn::kv {
namespace {

constexpr uint8_t kVersion = 1;        // Of uses.
constexpr uint8_t kSpaceVersion = 3;   // Of namespaces; versions 1 and 2 are read too.
constexpr uint8_t kRecordVersion = 2;  // Of stripe records; version 1 is read too.

void AddBig(std::string& out, const Id128& id) {
  for (const uint64_t word : {id.high, id.low}) {
    for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(word >> shift));
  }
}

Id128 TakeBig(std::string_view bytes) {
  Id128 id;
  for (size_t i = 0; i < 8; ++i) id.high = id.high << 8 | static_cast<uint8_t>(bytes[i]);
  for (size_t i = 8; i < 16; ++i) id.low = id.low << 8 | static_cast<uint8_t>(bytes[i]);
  return id;
}

template <typename T>
void AddLittle(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
  }
}

// Reads fields one after another; after the first that does not fit, all are zero.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T Little() {
    uint64_t value = 0;
    const std::string_view field = Take(sizeof(T));
    for (size_t i = 0; i < field.size(); ++i) {
      value |= uint64_t{static_cast<uint8_t>(field[i])} << (8 * i);
    }
    return static_cast<T>(value);
  }
  Id128 Id() {
    const std::string_view field = Take(16);
    return field.size() == 16 ? TakeBig(field) : Id128{};
  }
  std::string Text() { return std::string(Take(Little<uint32_t>())); }
  std::string_view Take(size_t size) {
    if (size > rest_.size()) {
      fits_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view field = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return field;
  }
  bool whole() const { return fits_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool fits_ = true;
};

// Version 2 kept another digest of the token, which judges no proof. Nothing hashes to zeros, so
// nobody attaches to such a namespace any more, until it is deleted and created anew.
StoredKey TakeTokenKey(Reader& in, uint8_t version) {
  constexpr size_t kDigestOfVersion2 = 16 + sizeof(Sha256Digest);
  StoredKey key;
  if (version == 2) {
    in.Take(kDigestOfVersion2);
  } else {
    for (uint8_t& byte : key.digest) byte = in.Little<uint8_t>();
  }
  return key;
}

void AddText(std::string& out, std::string_view text) {
  AddLittle(out, static_cast<uint32_t>(text.size()));
  out.append(text);
}

void Seal(std::string& record) { AddLittle(record, Checksum(AsBytes(record))); }

// The record without its checksum, or nothing.
std::optional<std::string_view> Unseal(std::string_view bytes) {
  if (bytes.size() < sizeof(uint64_t) + 1) return std::nullopt;
  const std::string_view body = bytes.substr(0, bytes.size() - sizeof(uint64_t));
  Reader tail(bytes.substr(body.size()));
  if (tail.Little<uint64_t>() != Checksum(AsBytes(body))) return std::nullopt;
  return body;
}

}  // namespace

std::string SpaceManifestPrefix(const NamespaceId& space) {
  std::string key(kManifestPrefix);
  AddBig(key, space);
  return key;
}

std::string RunPrefix(const NamespaceId& space, const RunId& run) {
  std::string key = SpaceManifestPrefix(space);
  AddBig(key, run);
  return key;
}

std::string ManifestKey(const StripeName& name) {
  std::string key = RunPrefix(name.space, name.run);
  AddBig(key, name.stripe);
  return key;
}

std::string StateKey(const StripeId& stripe) {
  std::string key(kStatePrefix);
  AddBig(key, stripe);
  return key;
}

std::string UseKey(const StripeId& stripe) {
  std::string key(kUsePrefix);
  AddBig(key, stripe);
  return key;
}

std::string RemovalKey(const StripeId& stripe) {
  std::string key(kRemovalPrefix);
  AddBig(key, stripe);
  return key;
}

std::optional<StripeId> StripeOfKey(std::string_view key) {
  static_assert(kStatePrefix.size() == kUsePrefix.size());
  static_assert(kStatePrefix.size() == kRemovalPrefix.size());
  const bool known = key.starts_with(kStatePrefix) || key.starts_with(kUsePrefix) ||
                     key.starts_with(kRemovalPrefix);
  if (!known || key.size() != kStatePrefix.size() + 16) return std::nullopt;
  return StripeId{TakeBig(key.substr(kStatePrefix.size()))};
}

std::string EncodeRecord(const StripeRecord& record) {
  const StripeState& state = record.state;
  std::string out;
  AddLittle(out, kRecordVersion);
  AddBig(out, state.space);
  AddBig(out, record.run);
  AddLittle(out, state.expires_at.value);
  AddLittle(out, state.last_access);
  AddLittle(out, state.position);
  AddLittle(out, state.ttl_seconds);
  AddLittle(out, static_cast<uint8_t>(state.kind));
  AddLittle(out, state.keep_until);
  AddLittle(out, state.payload_bytes);
  Seal(out);
  return out;
}

Result<StripeRecord> DecodeRecord(std::string_view bytes) {
  const std::optional<std::string_view> body = Unseal(bytes);
  if (!body) return Status(Code::kCorrupt, "a stripe record fails its checksum");
  Reader in(*body);
  const auto version = in.Little<uint8_t>();
  if (version != 1 && version != kRecordVersion) {
    return Status(Code::kCorrupt, "unknown version of a stripe record");
  }
  StripeRecord record;
  StripeState& state = record.state;
  state.space = NamespaceId{in.Id()};
  record.run = RunId{in.Id()};
  state.expires_at = {in.Little<int64_t>()};
  state.last_access = in.Little<uint32_t>();
  state.position = in.Little<uint32_t>();
  state.ttl_seconds = in.Little<uint32_t>();
  state.kind = static_cast<RetentionKind>(in.Little<uint8_t>() & 1);
  if (version >= 2) {
    state.keep_until = in.Little<uint32_t>();
    state.payload_bytes = in.Little<uint32_t>();
  }
  if (!in.whole()) return Status(Code::kCorrupt, "a stripe record of the wrong length");
  return record;
}

std::string EncodeUse(const StripeUse& use) {
  std::string out;
  AddLittle(out, kVersion);
  AddLittle(out, use.expires_at.value);
  AddLittle(out, use.last_access);
  AddLittle(out, use.keep_until);
  Seal(out);
  return out;
}

Result<StripeUse> DecodeUse(std::string_view bytes) {
  const std::optional<std::string_view> body = Unseal(bytes);
  if (!body) return Status(Code::kCorrupt, "a stripe's use fails its checksum");
  Reader in(*body);
  if (in.Little<uint8_t>() != kVersion) return Status(Code::kCorrupt, "unknown version of a use");
  StripeUse use;
  use.expires_at = {in.Little<int64_t>()};
  use.last_access = in.Little<uint32_t>();
  use.keep_until = in.Little<uint32_t>();
  if (!in.whole()) return Status(Code::kCorrupt, "a stripe's use of the wrong length");
  return use;
}

std::string SpaceKey(std::string_view name) { return std::string(kSpacePrefix).append(name); }

std::string TombstoneKey(const NamespaceId& space) {
  std::string key(kTombstonePrefix);
  AddBig(key, space);
  return key;
}

std::string EncodeSpace(const SpaceRecord& record) {
  std::string out;
  AddLittle(out, kSpaceVersion);
  AddBig(out, record.id);
  AddText(out, record.name);
  AddText(out, record.fingerprint);
  AddLittle(out, record.data_shards);
  AddLittle(out, record.parity_shards);
  AddLittle(out, record.run_blocks);
  AddLittle(out, static_cast<uint8_t>(record.retention));
  AddLittle(out, record.ttl_seconds);
  AddLittle(out, static_cast<uint8_t>(record.in_memory));
  AddLittle(out, record.quota_bytes);
  AddLittle(out, record.created_at.value);
  AddLittle(out, record.deleted_at.value);
  AddLittle(out, static_cast<uint8_t>(record.token_key.has_value()));
  if (record.token_key) out.append(AsText(record.token_key->digest));
  Seal(out);
  return out;
}

Result<SpaceRecord> DecodeSpace(std::string_view bytes) {
  const std::optional<std::string_view> body = Unseal(bytes);
  if (!body) return Status(Code::kCorrupt, "a namespace record fails its checksum");
  Reader in(*body);
  const auto version = in.Little<uint8_t>();
  if (version < 1 || version > kSpaceVersion) {
    return Status(Code::kCorrupt, "unknown namespace version");
  }
  SpaceRecord record;
  record.id = NamespaceId{in.Id()};
  record.name = in.Text();
  record.fingerprint = in.Text();
  record.data_shards = in.Little<uint8_t>();
  record.parity_shards = in.Little<uint8_t>();
  record.run_blocks = in.Little<uint32_t>();
  record.retention = static_cast<RetentionKind>(in.Little<uint8_t>() & 1);
  record.ttl_seconds = in.Little<uint32_t>();
  if (version >= 2) {
    record.in_memory = in.Little<uint8_t>() != 0;
    record.quota_bytes = in.Little<uint64_t>();
    record.created_at = {in.Little<int64_t>()};
    record.deleted_at = {in.Little<int64_t>()};
    if (in.Little<uint8_t>() != 0) record.token_key = TakeTokenKey(in, version);
  }
  if (!in.whole()) return Status(Code::kCorrupt, "a namespace record of the wrong length");
  return record;
}

}  // namespace cairn::kv
