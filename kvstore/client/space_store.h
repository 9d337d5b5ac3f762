// Where the records of namespaces live: on the targets of one process, or in a control store.
#pragma once

#include "kvstore/base/log.h"
#include "kvstore/client/space_registry.h"
#include "kvstore/client/target_set.h"

namespace cairn::kv {

// Loop thread only.
class SpaceStore {
 public:
  virtual ~SpaceStore() = default;
  // Fills the registry with all there is: once, when the store opens. What is not there later is
  // told to the registry as it comes. kUnavailable when nobody has it.
  virtual Task<Status> Load(SpaceRegistry& registry) = 0;
  // A namespace, or a tombstone. Ok when it survives the loss of one place; on failure it may turn
  // up later or not. kConflict, of a namespace: another process has made one of that name, and Load
  // tells which.
  virtual Task<Status> Save(SpaceRecord record) = 0;
  // Whether other processes make namespaces, too: what the registry lacks may be there after Load.
  virtual bool shared() const { return false; }
};

// On every target there is. All must outlive it.
class TargetSpaceStore final : public SpaceStore {
 public:
  TargetSpaceStore(Clock& clock, Log& log, TargetSet& targets)
      : clock_(clock), log_(log), targets_(targets) {}

  // Targets that were away, or were formatted anew, learn the rest here.
  Task<Status> Load(SpaceRegistry& registry) override;
  // Ok when two targets have it, or all where there are fewer.
  Task<Status> Save(SpaceRecord record) override;

 private:
  Clock& clock_;
  Log& log_;
  TargetSet& targets_;
};

}  // namespace cairn::kv
