// The namespaces of a cluster, in the control store: made, deleted, listed, watched.
#pragma once

#include <string>
#include <vector>

#include "kvstore/control/control_keys.h"
#include "kvstore/control/control_store.h"
#include "kvstore/control/node_report.h"

namespace cairn::kv {

struct SpaceListing {
  std::vector<SpaceRecord> living;      // By name.
  std::vector<SpaceRecord> tombstones;  // Of deleted ones, by id.
  int64_t revision = 0;                 // As of which this is exact.
};

// Loop thread only. `store` must outlive this.
class SpaceDirectory {
 public:
  SpaceDirectory(ControlStore& store, ControlKeys keys) : store_(store), keys_(std::move(keys)) {}

  // kConflict when one of that name lives; kInvalid when the id is that of a deleted one.
  Task<Status> Create(SpaceRecord record, Instant deadline);
  // Leaves a tombstone, so that nobody takes what is left of it for something that lives.
  // kNotFound when none of that name lives.
  Task<Status> Delete(std::string name, UnixMillis now, Instant deadline);
  Task<Result<SpaceListing>> List(Instant deadline);
  // Whether anything was made or deleted after `revision`: as soon as it was, or at the deadline.
  // kNotFound when that far back is not known any more: List anew.
  Task<Result<bool>> AwaitChange(int64_t revision, Instant deadline);

  // Bytes by namespace, over all nodes, as the coordinator last added them up.
  Task<Result<UsageBySpace>> Usage(Instant deadline);

 private:
  ControlStore& store_;
  const ControlKeys keys_;
};

}  // namespace cairn::kv
