// A MetadataStore in a RocksDB database; every call that may block goes to Workers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kvstore/async/loop.h"
#include "kvstore/base/result.h"
#include "kvstore/io/workers.h"
#include "kvstore/metadata/metadata_store.h"

namespace cairn::kv {

// Memory that all databases of a process share: one block cache, which memtables count against.
class RocksDbMemory {
 public:
  RocksDbMemory(uint64_t cache_bytes, uint64_t memtable_bytes);
  ~RocksDbMemory();

  struct Parts;
  const Parts& parts() const { return *parts_; }

 private:
  std::unique_ptr<Parts> parts_;
};

// Opens or creates the database in folder `path`. Blocks: call it at start-up, or on a worker.
// kConflict: another process holds it. kCorrupt: damaged; the caller may remove the folder, since
// segments can rebuild all of it. kNoSpace, kUnavailable: cannot be read or written.
// After a failed write or sync every change fails until the database could be opened again, which
// each tries. `loop`, `workers` and `memory` must outlive the result.
Result<std::unique_ptr<MetadataStore>> OpenRocksDbStore(const std::string& path, Loop& loop,
                                                        Workers& workers,
                                                        const RocksDbMemory& memory);

}  // namespace cairn::kv
