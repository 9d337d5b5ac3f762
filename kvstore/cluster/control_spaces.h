// The namespaces of a cluster as its nodes' stores see them: in the control store, and followed.
#pragma once

#include "kvstore/async/event.h"
#include "kvstore/async/gate.h"
#include "kvstore/base/log.h"
#include "kvstore/client/space_store.h"
#include "kvstore/client/space_sweeper.h"
#include "kvstore/control/space_directory.h"
#include "kvstore/io/clock.h"

namespace cairn::kv {

// Loop thread only. All references must outlive it; Stop before it is destroyed.
class ControlSpaces final : public SpaceStore {
 public:
  ControlSpaces(Loop& loop, Clock& clock, ControlStore& store, ControlKeys keys)
      : clock_(clock), directory_(store, std::move(keys)), stopping_(loop), gate_(loop) {}

  Task<Status> Load(SpaceRegistry& registry) override;
  Task<Status> Save(SpaceRecord record) override;
  bool shared() const override { return true; }

  // Tells the registry what other nodes make and delete, and the sweeper of deletions.
  void Follow(SpaceRegistry& registry, SpaceSweeper& sweeper);
  Task<Result<UsageBySpace>> Usage();
  Task<void> Stop();

 private:
  Task<Status> Bury(SpaceRecord tombstone);
  Task<void> KeepFollowing(SpaceRegistry& registry, SpaceSweeper& sweeper);
  Instant CallDeadline() const { return clock_.Now() + Seconds(2); }

  Clock& clock_;
  SpaceDirectory directory_;
  int64_t revision_ = 0;  // Of the last listing.
  Event stopping_;
  Gate gate_;
};

}  // namespace cairn::kv
