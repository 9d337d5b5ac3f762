// An ordered map with revisions, and a bounded log of what happened.
#include "kvstore/control/control_state.h"

#include <algorithm>

#include "kvstore/control/field_codec.h"

namespace cairn::kv {
namespace {

constexpr size_t kEventsMax = 1000;
constexpr uint64_t kEventBytesMax = 8 * kMiB;
constexpr uint8_t kVersion = 1;
constexpr uint32_t kMagic = 0x74736363;  // "ccst"
constexpr uint64_t kKeySizeLimit = 1024;

}  // namespace

Status CheckTransaction(const Transaction& transaction) {
  uint64_t size = 0;
  std::set<std::string_view> keys;
  for (const Change& change : transaction.changes) {
    if (change.key.empty() || change.key.size() > kKeySizeLimit) {
      return Status(Code::kInvalid, "control store: a key must have 1 to 1024 bytes");
    }
    if (!keys.insert(change.key).second) {
      return Status(Code::kInvalid, "control store: a key twice in one transaction");
    }
    size += change.key.size() + change.value.size();
  }
  if (size > kControlValueSizeMax) {
    return Status(Code::kInvalid, "control store: more than 1 MiB in one transaction");
  }
  return Status();
}

Snapshot ControlState::Range(std::string_view prefix) const {
  Snapshot snapshot{.revision = revision_, .entries = {}};
  for (auto at = entries_.lower_bound(std::string(prefix));
       at != entries_.end() && at->first.starts_with(prefix); ++at) {
    snapshot.entries.push_back(at->second);
  }
  return snapshot;
}

bool ControlState::Holds(const Compare& compare) const {
  const auto found = entries_.find(compare.key);
  if (found == entries_.end()) return compare.revision == 0;
  const bool create = compare.field == Compare::Field::kCreateRevision;
  return compare.revision == (create ? found->second.create_revision : found->second.mod_revision);
}

Result<TransactionOutcome> ControlState::Commit(const Transaction& transaction) {
  KV_RETURN_IF_ERROR(CheckTransaction(transaction));
  for (const Compare& compare : transaction.compares) {
    if (!Holds(compare)) return TransactionOutcome{.succeeded = false, .revision = revision_};
  }
  for (const Change& change : transaction.changes) {
    const bool leased = change.kind == Change::Kind::kPut && change.lease != NodeLeaseId{};
    if (leased && !leases_.contains(change.lease)) {
      return Status(Code::kNotFound, "control store: the lease has run out");
    }
  }
  ++revision_;
  for (const Change& change : transaction.changes) {
    switch (change.kind) {
      case Change::Kind::kPut: Put(change); break;
      case Change::Kind::kDelete: Delete(change.key); break;
      case Change::Kind::kDeletePrefix: DeletePrefix(change.key); break;
    }
  }
  const bool changed = !events_.empty() && events_.back().entry.mod_revision == revision_;
  if (!changed) --revision_;
  return TransactionOutcome{.succeeded = true, .revision = revision_};
}

void ControlState::Put(const Change& change) {
  KeyValue& entry = entries_[change.key];
  if (entry.key.empty()) {
    entry.key = change.key;
    entry.create_revision = revision_;
  } else {
    Detach(entry);
  }
  entry.value = change.value;
  entry.mod_revision = revision_;
  entry.lease = change.lease;
  if (entry.lease != NodeLeaseId{}) leases_[entry.lease].keys.insert(entry.key);
  Note(false, entry);
}

void ControlState::Delete(const std::string& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  Detach(found->second);
  KeyValue deleted;
  deleted.key = key;
  deleted.mod_revision = revision_;
  entries_.erase(found);
  Note(true, deleted);
}

void ControlState::DeletePrefix(const std::string& prefix) {
  for (const KeyValue& entry : Range(prefix).entries) Delete(entry.key);
}

void ControlState::Detach(const KeyValue& entry) {
  const auto lease = leases_.find(entry.lease);
  if (lease != leases_.end()) lease->second.keys.erase(entry.key);
}

void ControlState::Note(bool deleted, const KeyValue& entry) {
  events_.push_back({.deleted = deleted, .entry = entry});
  event_bytes_ += entry.key.size() + entry.value.size();
  while (events_.size() > 1 && (events_.size() > kEventsMax || event_bytes_ > kEventBytesMax)) {
    // A revision that is half forgotten is forgotten.
    first_event_revision_ = events_.front().entry.mod_revision + 1;
    event_bytes_ -= events_.front().entry.key.size() + events_.front().entry.value.size();
    events_.pop_front();
  }
}

GrantedLease ControlState::Grant(Nanos ttl, Instant now) {
  const NodeLeaseId id{++last_lease_};
  const Nanos whole = std::max(ttl, Seconds(1));
  leases_[id] = {.ttl = whole, .expires_at = now + whole, .keys = {}};
  return {.id = id, .ttl = whole};
}

Status ControlState::KeepAlive(NodeLeaseId lease, Instant now) {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return Status(Code::kNotFound, "the lease has run out");
  found->second.expires_at = now + found->second.ttl;
  return Status();
}

void ControlState::Revoke(NodeLeaseId lease) {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return;
  const std::set<std::string> keys = std::move(found->second.keys);
  leases_.erase(found);
  if (keys.empty()) return;
  ++revision_;
  for (const std::string& key : keys) Delete(key);
}

void ControlState::Expire(Instant now) {
  std::vector<NodeLeaseId> over;
  for (const auto& [id, lease] : leases_) {
    if (lease.expires_at <= now) over.push_back(id);
  }
  for (const NodeLeaseId id : over) Revoke(id);
}

void ControlState::RenewAll(Instant now) {
  for (auto& [id, lease] : leases_) lease.expires_at = now + lease.ttl;
}

Instant ControlState::next_expiry() const {
  Instant next = kNever;
  for (const auto& [id, lease] : leases_) next = std::min(next, lease.expires_at);
  return next;
}

Result<WatchBatch> ControlState::EventsSince(std::string_view prefix,
                                             int64_t from_revision) const {
  if (from_revision < 1) return Status(Code::kInvalid, "a watch begins at revision 1 or later");
  if (from_revision < first_event_revision_) {
    return Status(Code::kNotFound, "that revision is forgotten: read the range anew");
  }
  WatchBatch batch{.events = {}, .next_revision = std::max(from_revision, revision_ + 1)};
  for (const WatchEvent& event : events_) {
    const bool wanted =
        event.entry.mod_revision >= from_revision && event.entry.key.starts_with(prefix);
    if (wanted) batch.events.push_back(event);
  }
  return batch;
}

std::string ControlState::Encode() const {
  FieldEncoder out;
  out.Fixed(kMagic);
  out.Byte(kVersion);
  out.Fixed(revision_);
  uint64_t count = 0;
  for (const auto& [key, entry] : entries_) count += entry.lease == NodeLeaseId{} ? 1 : 0;
  out.Number(count);
  for (const auto& [key, entry] : entries_) {
    if (entry.lease != NodeLeaseId{}) continue;
    out.Text(key);
    out.Text(entry.value);
    out.Fixed(entry.create_revision);
    out.Fixed(entry.mod_revision);
  }
  out.Seal();
  return out.bytes();
}

Result<ControlState> ControlState::Decode(std::string_view bytes) {
  const Status corrupt(Code::kCorrupt, "the control store's file is damaged");
  FieldDecoder in(bytes);
  if (!in.Unseal() || in.Fixed<uint32_t>() != kMagic || in.Byte() != kVersion) return corrupt;
  ControlState state;
  state.revision_ = in.Fixed<int64_t>();
  const uint32_t count = in.Count(UINT32_MAX);
  for (uint32_t i = 0; i < count && in.fits(); ++i) {
    KeyValue entry;
    entry.key = in.Text(kKeySizeLimit);
    entry.value = in.Text(kControlValueSizeMax);
    entry.create_revision = in.Fixed<int64_t>();
    entry.mod_revision = in.Fixed<int64_t>();
    std::string key = entry.key;
    state.entries_.emplace(std::move(key), std::move(entry));
  }
  if (!in.whole() || state.revision_ < 1) return corrupt;
  state.first_event_revision_ = state.revision_ + 1;
  return state;
}

}  // namespace cairn::kv
