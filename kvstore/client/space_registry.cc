// Living namespaces by id and by name, and the tombstones of the others.
#include "kvstore/client/space_registry.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "kvstore/base/check.h"
#include "kvstore/base/digest.h"
#include "kvstore/base/hmac.h"

namespace cairn::kv {
namespace {

// The names of bad shapes, for people.
std::string Describe(std::string_view fingerprint, uint32_t data_shards, uint32_t parity_shards,
                     uint32_t run_blocks, bool in_memory) {
  std::string text = "fingerprint \"";
  text.append(fingerprint).append("\", shape ").append(std::to_string(data_shards));
  text.append("+").append(std::to_string(parity_shards)).append(", runs of ");
  text.append(std::to_string(run_blocks));
  return text.append(in_memory ? ", in memory" : "");
}

// `nonce` is empty for the first generation: it can be found again when all records are lost.
NamespaceId IdOf(const NamespaceOptions& options, ByteSpan nonce) {
  Sha256Stream digest;
  digest.Add(AsBytes("cairn namespace 1"));
  const auto add = [&digest](ByteSpan part) {
    const std::string length = std::to_string(part.size()).append(":");
    digest.Add(AsBytes(length));
    digest.Add(part);
  };
  add(AsBytes(options.name));
  add(AsBytes(options.fingerprint));
  if (const std::optional<StoredKey> key = TokenKeyOf(options)) {
    digest.Add(AsBytes("token"));
    add(key->digest);
  }
  if (!nonce.empty()) {
    digest.Add(AsBytes("nonce"));
    add(nonce);
  }
  return NamespaceId{Id128::FromDigest(digest.Finish())};
}

// Keeps what identifies it; the rest is nobody's business any more.
SpaceRecord TombstoneOf(const SpaceRecord& record, UnixMillis now) {
  SpaceRecord tombstone;
  tombstone.id = record.id;
  tombstone.name = record.name;
  tombstone.created_at = record.created_at;
  tombstone.deleted_at = {std::max<int64_t>(now.value, 1)};
  return tombstone;
}

}  // namespace

Status CheckOptions(const NamespaceOptions& options) {
  const auto bad = [](const char* what) { return Status(Code::kInvalid, what); };
  if (options.name.empty() || options.name.size() > 128) return bad("a name has 1 to 128 bytes");
  if (options.fingerprint.size() > 4 * kKiB) return bad("a fingerprint has at most 4 KiB");
  if (options.data_shards < 1 || options.data_shards > kDataShardsMax) {
    return bad("data shards must be 1 to 32");
  }
  if (options.parity_shards > kParityShardsMax) return bad("parity shards must be 0 to 8");
  if (options.run_blocks < 1 || options.run_blocks > kStripeBlocksMax) {
    return bad("run blocks must be 1 to 256");
  }
  if (options.ttl_seconds < 1) return bad("a TTL is at least one second");
  return CheckToken(options);
}

Status CheckToken(const NamespaceOptions& options) {
  const auto bad = [](const char* what) { return Status(Code::kInvalid, what); };
  if (options.token.size() > kTokenSizeMax) return bad("a token has at most 4 KiB");
  if (!options.proof) return Status();
  const std::optional<StoredKey>& key = options.proof->new_key;
  if (!options.token.empty()) return bad("a token, or a proof of it, not both");
  if (options.create && !key) return bad("a namespace is created with the key of its token");
  if (key && !IsProven(*key, options.name, *options.proof)) return bad("the proof fits no key");
  return Status();
}

std::optional<StoredKey> TokenKeyOf(const NamespaceOptions& options) {
  if (options.proof) return options.proof->new_key;
  if (options.token.empty()) return std::nullopt;
  return StoredKeyOf({.name = options.name, .token = options.token});
}

bool TokenFits(const std::optional<StoredKey>& key, const NamespaceOptions& options) {
  if (!key) return options.token.empty() && !options.proof;
  if (options.proof) return IsProven(*key, options.name, *options.proof);
  const StoredKey given = StoredKeyOf({.name = options.name, .token = options.token});
  return SameSecret(given.digest, key->digest);
}

void SpaceRegistry::Load(const SpaceRecord& record, UnixMillis now) {
  if (IsDeleted(record.id)) return;
  if (record.deleted_at.value != 0) {
    if (Find(record.id) != nullptr) (void)Bury(record.id, now);
    buried_.insert_or_assign(record.id, record);
    return;
  }
  const SpaceRecord* rival = FindName(record.name);
  if (rival != nullptr && rival->id != record.id) {
    // Nobody deleted either: what the other has stays until it expires or is evicted.
    if (std::tie(record.created_at, record.id) < std::tie(rival->created_at, rival->id)) return;
    living_.erase(rival->id);
  }
  Revive(record);
}

std::vector<SpaceRecord> SpaceRegistry::All() const {
  std::vector<SpaceRecord> records;
  for (const auto& [id, record] : buried_) records.push_back(record);
  for (const auto& [id, record] : living_) records.push_back(record);
  return records;
}

const SpaceRecord* SpaceRegistry::Find(NamespaceId space) const {
  const auto found = living_.find(space);
  return found == living_.end() ? nullptr : &found->second;
}

const SpaceRecord* SpaceRegistry::FindName(std::string_view name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : Find(found->second);
}

Status SpaceRegistry::WhyNot(NamespaceId space) const {
  if (IsDeleted(space)) return Status(Code::kNotFound, "the namespace was deleted: attach again");
  return Status(Code::kInvalid, "unknown namespace: attach first");
}

std::vector<const SpaceRecord*> SpaceRegistry::List() const {
  std::vector<const SpaceRecord*> records;
  for (const auto& [name, id] : names_) records.push_back(Find(id));
  return records;
}

Status SpaceRegistry::CheckAttach(const SpaceRecord& known, const NamespaceOptions& options) {
  if (!TokenFits(known.token_key, options)) {
    return Status(Code::kConflict, "namespace \"" + options.name + "\" has another token");
  }
  const std::string has = Describe(known.fingerprint, known.data_shards, known.parity_shards,
                                   known.run_blocks, known.in_memory);
  const std::string wants =
      Describe(options.fingerprint, options.data_shards, options.parity_shards, options.run_blocks,
               options.medium == Medium::kMemory);
  if (has == wants) return Status();
  return Status(Code::kConflict, "namespace \"" + options.name + "\" exists with " + has +
                                     "; asked for with " + wants);
}

SpaceRecord SpaceRegistry::Create(const NamespaceOptions& options, UnixMillis now) {
  KV_CHECK(FindName(options.name) == nullptr);
  KV_CHECK(!options.proof || options.proof->new_key);  // CheckToken saw to it.
  SpaceRecord record;
  record.id = IdOf(options, {});
  while (living_.contains(record.id) || buried_.contains(record.id)) {
    std::array<uint8_t, 16> nonce{};
    random_.Fill(nonce);
    record.id = IdOf(options, nonce);
  }
  record.name = options.name;
  record.fingerprint = options.fingerprint;
  record.data_shards = options.data_shards;
  record.parity_shards = options.parity_shards;
  record.run_blocks = options.run_blocks;
  record.retention = options.retention;
  record.ttl_seconds = options.ttl_seconds;
  record.in_memory = options.medium == Medium::kMemory;
  record.quota_bytes = options.quota_bytes;
  record.created_at = now;
  record.token_key = TokenKeyOf(options);
  Revive(record);
  return record;
}

SpaceRecord SpaceRegistry::Bury(NamespaceId space, UnixMillis now) {
  const auto found = living_.find(space);
  KV_CHECK(found != living_.end());
  const SpaceRecord tombstone = TombstoneOf(found->second, now);
  names_.erase(found->second.name);
  living_.erase(found);
  buried_.insert_or_assign(space, tombstone);
  return tombstone;
}

void SpaceRegistry::Forget(const SpaceRecord& record) {
  living_.erase(record.id);
  names_.erase(record.name);
}

void SpaceRegistry::Revive(const SpaceRecord& record) {
  buried_.erase(record.id);
  names_.insert_or_assign(record.name, record.id);
  living_.insert_or_assign(record.id, record);
}

}  // namespace cairn::kv
