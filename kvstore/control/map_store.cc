// Parts first, then the head: whoever sees a head finds its parts.
#include "kvstore/control/map_store.h"

#include <utility>

namespace cairn::kv {
namespace {

// etcd takes 128 changes in a transaction, and 1.5 MiB.
constexpr size_t kChangesMax = 100;
constexpr uint64_t kBytesMax = 768 * kKiB;
// More missing parts than this are fetched with all others in one range.
constexpr size_t kSinglePartsMax = 4;
constexpr int kTriesMax = 5;

Status Replaced() { return Status(Code::kConflict, "somebody else writes the cluster map"); }

}  // namespace

Task<Result<MapStore::Loaded>> MapStore::Load(Instant deadline) {
  for (int tries = 0; tries < kTriesMax; ++tries) {
    auto snapshot = co_await store_.Range(keys_.MapHead(), deadline);
    if (!snapshot.ok()) co_return snapshot.status();
    Loaded loaded;
    loaded.revision = snapshot.value().revision;
    if (snapshot.value().entries.empty()) {
      head_revision_ = 0;
      co_return loaded;
    }
    const KeyValue& entry = snapshot.value().entries[0];
    KV_CO_ASSIGN_OR_RETURN(const MapHead head, DecodeMapHead(entry.value));
    KV_CO_ASSIGN_OR_RETURN(const bool complete, co_await FetchParts(head, deadline));
    if (!complete) continue;  // Replaced meanwhile: parts of older maps are deleted.
    std::vector<std::string_view> bytes;
    for (const std::string& name : head.part_names) bytes.push_back(parts_[name]);
    KV_CO_ASSIGN_OR_RETURN(loaded.map, DecodeMap(head, bytes));
    head_revision_ = entry.mod_revision;
    present_ = std::set<std::string>(head.part_names.begin(), head.part_names.end());
    co_return loaded;
  }
  co_return Status(Code::kUnavailable, "the cluster map changes faster than it can be read");
}

// False when the store does not have all of them any more.
Task<Result<bool>> MapStore::FetchParts(MapHead head, Instant deadline) {
  std::vector<std::string> missing;
  for (const std::string& name : head.part_names) {
    if (!parts_.contains(name)) missing.push_back(name);
  }
  const bool all = parts_.empty() || missing.size() > kSinglePartsMax;
  std::vector<std::string> ranges{""};
  if (!all) ranges = missing;
  for (const std::string& range : ranges) {
    auto snapshot = co_await store_.Range(keys_.MapParts() + range, deadline);
    if (!snapshot.ok()) co_return snapshot.status();
    if (all) stored_.clear();
    for (KeyValue& entry : snapshot.value().entries) {
      const std::string name = entry.key.substr(keys_.MapParts().size());
      if (all) stored_.insert(name);
      parts_[name] = std::move(entry.value);
    }
  }
  for (const std::string& name : missing) {
    if (!parts_.contains(name)) co_return false;
  }
  // What neither this map nor the one before it has is not needed here any more.
  const std::set<std::string> wanted(head.part_names.begin(), head.part_names.end());
  std::erase_if(parts_, [&](const auto& part) {
    return !wanted.contains(part.first) && !present_.contains(part.first);
  });
  co_return true;
}

Task<Status> MapStore::CommitGuarded(Transaction transaction, Instant deadline) {
  auto outcome = co_await store_.Commit(std::move(transaction), deadline);
  if (!outcome.ok()) co_return outcome.status();
  co_return outcome.value().succeeded ? Status() : Replaced();
}

Task<Status> MapStore::PutParts(EncodedMap encoded, Compare guard, Instant deadline) {
  Transaction transaction;
  uint64_t bytes = 0;
  for (MapPart& part : encoded.parts) {
    if (present_.contains(part.name)) continue;
    if (transaction.changes.size() >= kChangesMax || bytes + part.bytes.size() > kBytesMax) {
      transaction.compares.push_back(guard);
      KV_CO_RETURN_IF_ERROR(
          co_await CommitGuarded(std::exchange(transaction, Transaction()), deadline));
      bytes = 0;
    }
    bytes += part.bytes.size();
    bool twice = false;
    for (const Change& change : transaction.changes) {
      twice = twice || change.key == keys_.MapParts() + part.name;
    }
    if (twice) continue;
    stored_.insert(part.name);
    Change change;
    change.key = keys_.MapParts() + part.name;
    change.value = std::move(part.bytes);
    transaction.changes.push_back(std::move(change));
  }
  if (transaction.changes.empty()) co_return Status();
  transaction.compares.push_back(guard);
  co_return co_await CommitGuarded(std::move(transaction), deadline);
}

Task<Status> MapStore::Publish(std::shared_ptr<const ClusterMap> next, Compare guard,
                               Instant deadline) {
  EncodedMap encoded = EncodeMap(*next);
  std::set<std::string> names;
  for (const MapPart& part : encoded.parts) {
    names.insert(part.name);
    parts_[part.name] = part.bytes;
  }
  EncodedMap copy = encoded;
  KV_CO_RETURN_IF_ERROR(co_await PutParts(std::move(copy), guard, deadline));
  Transaction replace;
  Compare unchanged;
  unchanged.key = keys_.MapHead();
  unchanged.revision = head_revision_;
  replace.compares = {guard, unchanged};
  Change head;
  head.key = keys_.MapHead();
  head.value = encoded.head;
  replace.changes.push_back(std::move(head));
  auto outcome = co_await store_.Commit(std::move(replace), deadline);
  if (!outcome.ok()) co_return outcome.status();
  if (!outcome.value().succeeded) co_return Replaced();
  head_revision_ = outcome.value().revision;
  co_await DeleteStale(std::move(encoded), guard, deadline);
  present_ = std::move(names);
  co_return Status();
}

// Parts of maps before the last one. Who still reads such a map begins anew. A failure does not
// matter: the next time they go.
Task<void> MapStore::DeleteStale(EncodedMap encoded, Compare guard, Instant deadline) {
  std::set<std::string> wanted = present_;
  for (const MapPart& part : encoded.parts) wanted.insert(part.name);
  Transaction transaction;
  transaction.compares.push_back(guard);
  for (const std::string& name : stored_) {
    if (wanted.contains(name) || transaction.changes.size() >= kChangesMax) continue;
    Change change;
    change.kind = Change::Kind::kDelete;
    change.key = keys_.MapParts() + name;
    transaction.changes.push_back(std::move(change));
  }
  if (transaction.changes.empty()) co_return;
  const std::vector<Change> deleted = transaction.changes;
  const Status done = co_await CommitGuarded(std::move(transaction), deadline);
  if (!done.ok()) co_return;
  for (const Change& change : deleted) {
    const std::string name = change.key.substr(keys_.MapParts().size());
    stored_.erase(name);
    parts_.erase(name);
  }
}

}  // namespace cairn::kv
