// Targets as folders of a data folder: `target-NN/segments` is the device, `target-NN/index`
// RocksDB.
#pragma once

#include <cstdint>
#include <string>

#include "kvstore/metadata/rocksdb_store.h"
#include "kvstore/node/embedded/data_dir.h"
#include "kvstore/node/node.h"
#include "kvstore/os/poller.h"

namespace cairn::kv {

struct FolderMediaOptions {
  uint32_t targets = 12;
  uint64_t target_bytes = 1 * kGiB;  // Of targets that are made from now on.
};

// Blocks, for start-up. Everything must outlive it.
class FolderMedia final : public MediaSource {
 public:
  FolderMedia(const DataDir& dir, Clock& clock, Poller& poller, Workers& workers,
              const RocksDbMemory& memory, Log& log, FolderMediaOptions options);

  // Before the first Open. kConflict: some target is of another version. kNoSpace: there is no room
  // for those still to be made. kInvalid: a folder is not writable. Touches nothing.
  Status Check() const;

  uint32_t count() const override { return options_.targets; }
  Task<Result<TargetMedium>> Open(uint32_t i) override;
  Task<Result<TargetMedium>> Replace(uint32_t i, Status why) override;
  Task<Result<TargetMedium>> ForgetMetadata(uint32_t i, Status why) override;

 private:
  bool Exists(uint32_t i) const;
  bool AnyExists() const;
  Task<Result<TargetMedium>> OpenPatiently(uint32_t i);
  Task<Result<TargetMedium>> OpenNow(uint32_t i);

  const DataDir& dir_;
  Clock& clock_;
  Poller& poller_;
  Workers& workers_;
  const RocksDbMemory& memory_;
  Log& log_;
  const FolderMediaOptions options_;
  bool fresh_ = false;  // No target existed at the start: nothing to regret.
};

}  // namespace cairn::kv
