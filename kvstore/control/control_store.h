// The seam to etcd: a small ordered store of keys with revisions, transactions, leases and watches.
//
// Three twins: EtcdStore (kvstore/control/etcd), FileStore (kvstore/control/file: one process), and
// the simulated one (tests/sim). One conformance suite covers all three.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kvstore/async/task.h"
#include "kvstore/base/result.h"
#include "kvstore/base/time.h"
#include "kvstore/base/units.h"

namespace cairn::kv {

// Of one value. Of a transaction all keys and values together may have as much.
inline constexpr uint64_t kControlValueSizeMax = 1 * kMiB;

struct NodeLeaseId {
  int64_t value = 0;  // 0: none.
  auto operator<=>(const NodeLeaseId&) const = default;
};

// Each transaction that changes something makes the next revision of the whole store.
struct KeyValue {
  std::string key;
  std::string value;
  int64_t create_revision = 0;  // Of the key's present life.
  int64_t mod_revision = 0;     // Of its last put.
  NodeLeaseId lease;                // With which the key goes.
  bool operator==(const KeyValue&) const = default;
};

struct Snapshot {
  int64_t revision = 0;           // As of which it is exact.
  std::vector<KeyValue> entries;  // By key.
};

// Holds when the key's revision is the one given; 0: when there is no such key.
struct Compare {
  enum class Field : uint8_t { kCreateRevision, kModRevision };
  std::string key;
  Field field = Field::kModRevision;
  int64_t revision = 0;
};

struct Change {
  enum class Kind : uint8_t {
    kPut,
    kDelete,        // Of the key; without the key it does nothing.
    kDeletePrefix,  // Of all keys that begin with it.
  };
  Kind kind = Kind::kPut;
  std::string key;
  std::string value = {};
  NodeLeaseId lease = {};  // kPut only: the key goes when the lease does.
};

// Either all of `changes` happen, in one revision, or none. A key is in at most one of them.
struct Transaction {
  std::vector<Compare> compares = {};
  std::vector<Change> changes = {};
};

struct TransactionOutcome {
  bool succeeded = false;  // All compares held.
  int64_t revision = 0;    // Of the store after it.
};

struct WatchEvent {
  bool deleted = false;  // Then only `key` and `mod_revision` (that of the deletion) count.
  KeyValue entry;
  bool operator==(const WatchEvent&) const = default;
};

struct WatchBatch {
  std::vector<WatchEvent> events;  // In their order; whole revisions only.
  int64_t next_revision = 0;       // From where to go on.
};

struct GrantedLease {
  NodeLeaseId id;
  Nanos ttl{0};  // May be longer than was asked for.
};

// All calls: kUnavailable when the store cannot be reached, kDeadline when it did not answer in
// time; then a change may or may not have happened. kInvalid when the request itself is wrong.
// Loop thread only. Every call must be over before the store is destroyed.
class ControlStore {
 public:
  virtual ~ControlStore() = default;

  // All keys that begin with `prefix`: never older than what any earlier call, of anybody, saw.
  virtual Task<Result<Snapshot>> Range(std::string prefix, Instant deadline) = 0;

  // kNotFound when a lease that it names is gone: then nothing happened.
  virtual Task<Result<TransactionOutcome>> Commit(Transaction transaction, Instant deadline) = 0;

  // The lease lives for `ttl` (whole seconds, at least one) after this and after each KeepAlive.
  // Deadlines of leases may be late, never early.
  virtual Task<Result<GrantedLease>> Grant(Nanos ttl, Instant deadline) = 0;
  // kNotFound when it has run out.
  virtual Task<Status> KeepAlive(NodeLeaseId lease, Instant deadline) = 0;
  // Its keys go at once. A lease that is gone already is a success.
  virtual Task<Status> Revoke(NodeLeaseId lease, Instant deadline) = 0;

  // What happened to keys that begin with `prefix` from `from_revision` (at least 1) on: as soon as
  // there is anything, or an empty batch at the deadline. kNotFound when that far back is not known
  // any more: Range anew.
  virtual Task<Result<WatchBatch>> Watch(std::string prefix, int64_t from_revision,
                                         Instant deadline) = 0;
};

// kInvalid with words when the transaction breaks a rule of the seam.
Status CheckTransaction(const Transaction& transaction);

}  // namespace cairn::kv
