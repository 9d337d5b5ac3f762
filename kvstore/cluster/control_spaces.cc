// Lists once, then again whenever something changed.
#include "kvstore/cluster/control_spaces.h"

#include <utility>

namespace cairn::kv {
namespace {

constexpr Nanos kRetryAfter = Seconds(1);

}  // namespace

Task<Status> ControlSpaces::Load(SpaceRegistry& registry) {
  const auto listing = co_await directory_.List(CallDeadline());
  if (!listing.ok()) {
    co_return Status(listing.code(), "the namespaces cannot be read: " +
                                         listing.status().message());
  }
  const UnixMillis now = clock_.UnixNow();
  for (const SpaceRecord& record : listing.value().tombstones) registry.Load(record, now);
  for (const SpaceRecord& record : listing.value().living) registry.Load(record, now);
  revision_ = listing.value().revision;
  co_return Status();
}

Task<Status> ControlSpaces::Save(SpaceRecord record) {
  if (record.deleted_at == UnixMillis()) {
    return directory_.Create(std::move(record), CallDeadline());
  }
  return Bury(std::move(record));
}

// One of the same name that another node made is not ours to delete.
Task<Status> ControlSpaces::Bury(SpaceRecord tombstone) {
  const auto listing = co_await directory_.List(CallDeadline());
  if (!listing.ok()) co_return listing.status();
  for (const SpaceRecord& living : listing.value().living) {
    const bool same = living.id == tombstone.id && living.created_at == tombstone.created_at;
    if (!same) continue;
    co_return co_await directory_.Delete(tombstone.name, tombstone.deleted_at, CallDeadline());
  }
  co_return Status();
}

Task<Result<UsageBySpace>> ControlSpaces::Usage() { return directory_.Usage(CallDeadline()); }

void ControlSpaces::Follow(SpaceRegistry& registry, SpaceSweeper& sweeper) {
  gate_.Hold(KeepFollowing(registry, sweeper));
}

Task<void> ControlSpaces::KeepFollowing(SpaceRegistry& registry, SpaceSweeper& sweeper) {
  while (!stopping_.is_set()) {
    const auto changed = co_await directory_.AwaitChange(revision_, CallDeadline());
    Status outcome = changed.status();
    const bool stale = changed.code() == Code::kNotFound;
    if (stale || (changed.ok() && changed.value())) {
      outcome = co_await Load(registry);
      if (outcome.ok()) sweeper.NoteDeletion();
    }
    if (!outcome.ok()) co_await clock_.SleepUntil(clock_.Now() + kRetryAfter, &stopping_);
  }
}

Task<void> ControlSpaces::Stop() {
  stopping_.Set();
  return gate_.Close();
}

}  // namespace cairn::kv
