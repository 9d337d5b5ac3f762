// The narrow interface to a target's ordered key-value metadata: batch, get, scan, sync.
//
// RocksDB stands behind it in production; a deterministic twin that loses unsynced batches in a
// crash stands behind it in simulation. It may forget recent batches in a power cut; what it says
// is what was once written. Nothing in it is the only copy: segments can rebuild all of it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvstore/async/task.h"
#include "kvstore/base/result.h"

namespace cairn::kv {

// Puts and deletes that take effect together or not at all, in order.
struct MetadataBatch {
  struct Change {
    std::string key;
    bool is_delete = false;
    std::string value;
  };
  std::vector<Change> changes;

  void Put(std::string key, std::string value) {
    changes.push_back({std::move(key), false, std::move(value)});
  }
  void Delete(std::string key) { changes.push_back({std::move(key), true, {}}); }
  bool empty() const { return changes.empty(); }
};

// Loop thread only; the implementation takes blocking calls to Workers. Keys order by bytes.
// Failures are kUnavailable (I/O), kNoSpace or kCorrupt (the database is damaged).
class MetadataStore {
 public:
  virtual ~MetadataStore() = default;

  // Survives the process at once, and a power cut after the next Sync. Batches take effect in the
  // order of the calls.
  virtual Task<Status> Write(MetadataBatch batch) = 0;

  // kNotFound is an ordinary answer.
  virtual Task<Result<std::string>> Get(std::string key) = 0;

  struct Entry {
    std::string key;
    std::string value;
  };
  // Entries whose key starts with `prefix` and is greater than `after`, ascending, at most `limit`.
  virtual Task<Result<std::vector<Entry>>> Scan(std::string prefix, std::string after,
                                                size_t limit) = 0;

  virtual Task<Status> Sync() = 0;

  // Bytes of memory that the store holds (memtables, caches), for accounting.
  virtual uint64_t memory_bytes() const = 0;
};

}  // namespace cairn::kv
