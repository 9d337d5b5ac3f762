// Records by name, tombstones by id, both as kvstore/index/index_codec.h writes them.
#include "kvstore/control/space_directory.h"

namespace cairn::kv {

Task<Status> SpaceDirectory::Create(SpaceRecord record, Instant deadline) {
  Compare free;
  free.key = keys_.Space(record.name);
  Compare never_deleted;
  never_deleted.key = keys_.Tombstone(record.id);
  Change put;
  put.key = free.key;
  put.value = EncodeSpace(record);
  Transaction transaction;
  transaction.compares = {free, never_deleted};
  transaction.changes.push_back(std::move(put));
  auto outcome = co_await store_.Commit(std::move(transaction), deadline);
  if (!outcome.ok()) co_return outcome.status();
  if (outcome.value().succeeded) co_return Status();
  auto there = co_await store_.Range(free.key, deadline);
  if (!there.ok()) co_return there.status();
  for (const KeyValue& entry : there.value().entries) {
    if (entry.key == free.key) {
      co_return Status(Code::kConflict, "a namespace '" + record.name + "' exists already");
    }
  }
  co_return Status(Code::kInvalid, "a namespace of this id was deleted: draw another id");
}

Task<Status> SpaceDirectory::Delete(std::string name, UnixMillis now, Instant deadline) {
  const std::string key = keys_.Space(name);
  auto snapshot = co_await store_.Range(key, deadline);
  if (!snapshot.ok()) co_return snapshot.status();
  for (const KeyValue& entry : snapshot.value().entries) {
    if (entry.key != key) continue;
    KV_CO_ASSIGN_OR_RETURN(SpaceRecord record, DecodeSpace(entry.value));
    record.deleted_at = now;
    record.fingerprint.clear();
    record.token_key.reset();
    Compare unchanged;
    unchanged.key = key;
    unchanged.revision = entry.mod_revision;
    Change remove;
    remove.kind = Change::Kind::kDelete;
    remove.key = key;
    Change bury;
    bury.key = keys_.Tombstone(record.id);
    bury.value = EncodeSpace(record);
    Transaction transaction;
    transaction.compares.push_back(unchanged);
    transaction.changes.push_back(std::move(remove));
    transaction.changes.push_back(std::move(bury));
    auto outcome = co_await store_.Commit(std::move(transaction), deadline);
    if (!outcome.ok()) co_return outcome.status();
    if (outcome.value().succeeded) co_return Status();
    co_return Status(Code::kConflict, "somebody else changed namespace '" + name + "' just now");
  }
  co_return Status(Code::kNotFound, "there is no namespace '" + name + "'");
}

Task<Result<SpaceListing>> SpaceDirectory::List(Instant deadline) {
  auto snapshot = co_await store_.Range(keys_.Spaces(), deadline);
  if (!snapshot.ok()) co_return snapshot.status();
  SpaceListing listing;
  listing.revision = snapshot.value().revision;
  for (const KeyValue& entry : snapshot.value().entries) {
    KV_CO_ASSIGN_OR_RETURN(SpaceRecord record, DecodeSpace(entry.value));
    const bool lives = record.deleted_at == UnixMillis();
    (lives ? listing.living : listing.tombstones).push_back(std::move(record));
  }
  co_return listing;
}

Task<Result<bool>> SpaceDirectory::AwaitChange(int64_t revision, Instant deadline) {
  auto batch = co_await store_.Watch(keys_.Spaces(), revision + 1, deadline);
  if (!batch.ok()) co_return batch.status();
  co_return !batch.value().events.empty();
}

Task<Result<UsageBySpace>> SpaceDirectory::Usage(Instant deadline) {
  auto snapshot = co_await store_.Range(keys_.UsageTotal(), deadline);
  if (!snapshot.ok()) co_return snapshot.status();
  if (snapshot.value().entries.empty()) co_return UsageBySpace();
  co_return DecodeSpaceUsage(snapshot.value().entries[0].value);
}

}  // namespace cairn::kv
