// The content of a control store, and what each request does to it. Pure: no I/O, no clock.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "kvstore/control/control_store.h"

namespace cairn::kv {

class ControlState {
 public:
  int64_t revision() const { return revision_; }

  Snapshot Range(std::string_view prefix) const;
  Result<TransactionOutcome> Commit(const Transaction& transaction);

  GrantedLease Grant(Nanos ttl, Instant now);
  Status KeepAlive(NodeLeaseId lease, Instant now);
  void Revoke(NodeLeaseId lease);
  // Revokes what has run out by then.
  void Expire(Instant now);
  // All leases get their whole time from now on: as when the store itself was away.
  void RenewAll(Instant now);
  // When the next one runs out; kNever when there is none.
  Instant next_expiry() const;

  // As ControlStore::Watch says, without waiting.
  Result<WatchBatch> EventsSince(std::string_view prefix, int64_t from_revision) const;

  // Keys without leases, and the revision. What is decoded has no leases, and events only from its
  // revision on.
  std::string Encode() const;
  static Result<ControlState> Decode(std::string_view bytes);

 private:
  struct Lease {
    Nanos ttl{0};
    Instant expires_at;
    std::set<std::string> keys;
  };

  bool Holds(const Compare& compare) const;
  void Put(const Change& change);
  void Delete(const std::string& key);
  void DeletePrefix(const std::string& prefix);
  void Detach(const KeyValue& entry);
  void Note(bool deleted, const KeyValue& entry);

  int64_t revision_ = 1;
  int64_t first_event_revision_ = 1;  // What happened before it is not known any more.
  std::map<std::string, KeyValue> entries_;
  int64_t last_lease_ = 0;
  std::map<NodeLeaseId, Lease> leases_;
  std::deque<WatchEvent> events_;
  uint64_t event_bytes_ = 0;
};

}  // namespace cairn::kv
