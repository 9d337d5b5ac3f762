// Looks up ports by id and counts failures in a row.
#include "kvstore/client/target_set.h"

#include <algorithm>

namespace cairn::kv {
namespace {

constexpr uint32_t kFailuresMax = 3;
constexpr Nanos kSuspectFor = Seconds(5);

std::ptrdiff_t CountLost(const std::vector<Status>& shards) {
  return std::count_if(shards.begin(), shards.end(),
                       [](const Status& one) { return one.code() == Code::kNotFound; });
}

}  // namespace

TargetSet::TargetSet(Clock& clock, std::vector<TargetPort*> ports) : clock_(clock) {
  Use(std::move(ports));
}

void TargetSet::Use(std::vector<TargetPort*> ports) {
  ports_ = std::move(ports);
  std::sort(ports_.begin(), ports_.end(),
            [](const TargetPort* a, const TargetPort* b) { return a->id() < b->id(); });
  ids_.clear();
  for (const TargetPort* port : ports_) ids_.push_back(port->id());
}

TargetPort* TargetSet::Find(TargetId id) const {
  const auto found = std::lower_bound(ids_.begin(), ids_.end(), id);
  if (found == ids_.end() || *found != id) return nullptr;
  return ports_[static_cast<size_t>(found - ids_.begin())];
}

std::vector<TargetState> TargetSet::States() const {
  std::vector<TargetState> states;
  for (const TargetPort* port : ports_) {
    states.push_back({.id = port->id(),
                      .live = IsLive(port->id()),
                      .free_bytes = port->free_bytes(),
                      .queue = port->operations_in_flight()});
  }
  return states;
}

size_t TargetSet::live_count() const {
  return static_cast<size_t>(
      std::count_if(ids_.begin(), ids_.end(), [this](TargetId id) { return IsLive(id); }));
}

bool TargetSet::IsLive(TargetId id) const {
  const auto found = health_.find(id);
  return found == health_.end() || found->second.failures < kFailuresMax ||
         clock_.Now() >= found->second.suspect_until;
}

void TargetSet::Note(TargetId id, const Status& outcome) {
  if (outcome.code() != Code::kUnavailable && outcome.code() != Code::kDeadline) {
    health_.erase(id);
    return;
  }
  Health& health = health_[id];
  if (++health.failures >= kFailuresMax) health.suspect_until = clock_.Now() + kSuspectFor;
}

void TargetSet::Suspect(TargetId id) {
  health_[id] = {.failures = kFailuresMax, .suspect_until = clock_.Now() + kSuspectFor};
}

uint32_t TargetSet::ShardsAtHand(const Manifest& manifest) const {
  uint32_t count = 0;
  for (size_t i = 0; i < manifest.targets.size(); ++i) {
    const TargetPort* port = Find(manifest.targets[i]);
    const ShardIndex index{static_cast<uint8_t>(i)};
    if (port != nullptr && port->MayHold(manifest.stripe, index)) ++count;
  }
  return count;
}

Task<std::vector<Status>> TargetSet::AskShards(const Manifest& manifest) const {
  return AskShards(manifest, 0);
}

Task<std::vector<Status>> TargetSet::AskShards(const Manifest& manifest, size_t unasked) const {
  std::vector<Status> outcomes(manifest.targets.size(),
                               Status(Code::kUnavailable, "its target is gone"));
  std::vector<std::pair<size_t, Task<Status>>> calls;
  for (size_t i = 0; i < manifest.targets.size(); ++i) {
    TargetPort* port = Find(manifest.targets[i]);
    const ShardIndex index{static_cast<uint8_t>(i)};
    if (port == nullptr) continue;
    if (unasked > 0 && IsSlow(port->id())) {
      --unasked;
      outcomes[i] = Status(Code::kUnavailable, "its target is slow, and was not asked");
      continue;
    }
    calls.emplace_back(i, port->Holds(manifest.stripe, index));
  }
  for (auto& [i, call] : calls) outcomes[i] = co_await call;
  co_return outcomes;
}

Task<bool> TargetSet::IsWhole(const Manifest& manifest) const {
  if (ShardsAtHand(manifest) < manifest.shard_count()) co_return false;
  const uint32_t needed =
      std::min<uint32_t>(manifest.shard_count(), uint32_t{manifest.data_shards} + 1);
  std::vector<Status> shards = co_await AskShards(manifest, manifest.shard_count() - needed);
  const auto there = [&shards] {
    return static_cast<uint32_t>(std::count_if(shards.begin(), shards.end(),
                                               [](const Status& one) { return one.ok(); }));
  };
  // Without the slow ones it is not sure: some other one is away.
  if (is_slow_ && CountLost(shards) == 0 && there() < needed) shards = co_await AskShards(manifest);
  co_return CountLost(shards) == 0 && there() >= needed;
}

Task<bool> TargetSet::IsLost(const Manifest& manifest) const {
  const std::vector<Status> shards = co_await AskShards(manifest);
  co_return CountLost(shards) > manifest.parity_shards;
}

}  // namespace cairn::kv
