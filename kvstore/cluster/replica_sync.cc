// Lists what the other replica has filed, and copies what only one of the two has.
#include "kvstore/cluster/replica_sync.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "kvstore/async/lanes.h"

namespace cairn::kv {
namespace {

constexpr size_t kPage = 4096;
constexpr uint64_t kCopiesAtOnce = 16;

}  // namespace

Task<Status> ReplicaSync::Run(std::shared_ptr<const ClusterMap> map, uint64_t& filed) {
  std::map<uint32_t, uint64_t> since;
  for (const uint32_t group : parts_.groups.Here()) since[group] = parts_.groups.SinceOf(group);
  std::set<uint32_t> failed;
  foreign_.clear();
  Status outcome;
  for (const Pair& pair : PairsOf(*map)) {
    Status compared = co_await Compare(*map, pair, filed);
    if (compared.ok()) continue;
    failed.insert(pair.groups.begin(), pair.groups.end());
    outcome = std::move(compared);
  }
  const Status disowned = co_await DisownForeign(failed);
  if (!disowned.ok()) co_return disowned;
  for (const auto& [group, from] : since) {
    if (failed.contains(group)) continue;
    parts_.groups.NoteCompared(group, from);
    const Group& entry = map->groups()[group];
    for (size_t place = 0; place < kIndexReplicas; ++place) {
      if (entry.IsFilling(place)) filled_.insert({group, entry.targets[place]});
    }
  }
  co_return outcome;
}

void ReplicaSync::ForgetFilled(const ClusterMap& map) {
  std::erase_if(filled_, [&](const FilledPlace& mark) {
    const Group& group = map.groups()[mark.group];
    for (size_t place = 0; place < kIndexReplicas; ++place) {
      if (group.targets[place] == mark.target && group.IsFilling(place)) return false;
    }
    return true;
  });
}

std::vector<ReplicaSync::Pair> ReplicaSync::PairsOf(const ClusterMap& map) const {
  std::map<TargetId, std::set<uint32_t>> pairs;
  for (const uint32_t group : parts_.groups.Here()) {
    for (const TargetId id : map.groups()[group].targets) {
      const TargetEntry* entry = map.FindTarget(id);
      if (entry != nullptr && entry->node != self_) pairs[id].insert(group);
    }
  }
  std::vector<Pair> all;
  for (auto& [other, groups] : pairs) all.push_back({other, std::move(groups)});
  return all;
}

LocalTarget* ReplicaSync::OwnReplica(const ClusterMap& map, uint32_t group) const {
  for (const auto& target : parts_.own) {
    if (target->id() == map.groups()[group].targets[0]) return target.get();
  }
  return nullptr;
}

Task<Status> ReplicaSync::Compare(const ClusterMap& map, const Pair& pair, uint64_t& filed) {
  const TargetEntry* entry = map.FindTarget(pair.other);
  TargetPort* port = parts_.targets.Find(pair.other);
  const bool serves = entry->state == MemberState::kUp || entry->state == MemberState::kJoining;
  if (!serves || port == nullptr) {
    co_return Status(Code::kUnavailable, "a replica of the index is away");
  }
  const auto there = co_await ListAt(map, pair, *port);
  if (!there.ok()) co_return there.status();
  const Stripes& stripes = there.value();
  KV_CO_RETURN_IF_ERROR(co_await Pull(map, pair, *port, stripes, filed));
  co_return co_await Push(map, pair, *port, stripes, filed);
}

Task<Result<ReplicaSync::Stripes>> ReplicaSync::ListAt(const ClusterMap& map, const Pair& pair,
                                                       TargetPort& port) const {
  Stripes stripes;
  std::optional<StripeId> after;
  while (true) {
    const auto page = co_await port.ListFiled(after, kPage);
    if (!page.ok()) co_return page.status();
    for (const TargetPort::Filed& filed : page.value()) {
      const uint32_t group = map.GroupIndexOf(GroupHashOf(filed.stripe));
      if (pair.groups.contains(group)) stripes.insert(filed.stripe);
    }
    if (page.value().size() < kPage) break;
    after = page.value().back().stripe;
  }
  co_return std::move(stripes);
}

Task<Status> ReplicaSync::Pull(const ClusterMap& map, const Pair& pair, TargetPort& port,
                               const Stripes& there, uint64_t& filed) {
  std::vector<StripeId> wanted;
  for (const StripeId& stripe : there) {
    if (parts_.index.StateOf(stripe)) continue;
    const uint32_t group = map.GroupIndexOf(GroupHashOf(stripe));
    if (IsSource(map.groups()[group], pair.other)) {
      wanted.push_back(stripe);
    } else {
      foreign_.push_back({&port, stripe, group});
    }
  }
  const std::function<Task<Status>(uint64_t)> pull = [&](uint64_t i) {
    return parts_.index.Adopt(port, wanted[i], filed);
  };
  co_return co_await RunInLanes(wanted.size(), kCopiesAtOnce, pull);
}

// What no source has. Where one could not be asked, it may be a put of a moment ago.
Task<Status> ReplicaSync::DisownForeign(const std::set<uint32_t>& failed) {
  std::erase_if(foreign_, [&](const Foreign& one) { return failed.contains(one.group); });
  const std::function<Task<Status>(uint64_t)> disown = [&](uint64_t i) {
    return parts_.index.Disown(*foreign_[i].port, foreign_[i].stripe);
  };
  co_return co_await RunInLanes(foreign_.size(), kCopiesAtOnce, disown);
}

bool ReplicaSync::IsSource(const Group& group, TargetId other) {
  for (size_t place = 0; place < kIndexReplicas; ++place) {
    if (group.targets[place] == other) return group.IsSource(place);
  }
  return true;
}

Task<Status> ReplicaSync::Push(const ClusterMap& map, const Pair& pair, TargetPort& port,
                               const Stripes& there, uint64_t& filed) {
  std::vector<std::pair<LocalTarget*, StripeId>> lacking;
  const UnixMillis now = parts_.clock.UnixNow();
  for (const auto& target : parts_.own) {
    const auto look = [&](StripeId stripe, const StripeState& state) {
      const uint32_t group = map.GroupIndexOf(GroupHashOf(stripe));
      const bool shared = pair.groups.contains(group) && OwnReplica(map, group) == target.get();
      if (shared && now < state.expires_at && !there.contains(stripe)) {
        lacking.emplace_back(target.get(), stripe);
      }
      return true;
    };
    target->index().states().ForEachAfter(std::nullopt, look);
  }
  const std::function<Task<Status>(uint64_t)> push = [&](uint64_t i) {
    return PushOne(*lacking[i].first, port, lacking[i].second, filed);
  };
  co_return co_await RunInLanes(lacking.size(), kCopiesAtOnce, push);
}

// Not when another replica knows where the shards are now.
Task<bool> ReplicaSync::IsLost(const Manifest& manifest) {
  const bool lost = co_await parts_.targets.IsLost(manifest);
  if (!lost) co_return false;
  const auto filed = co_await parts_.index.FindFiled(manifest.stripe);
  co_return filed.ok() && filed.value().stripe.manifest.generation == manifest.generation;
}

Task<Status> ReplicaSync::PushOne(LocalTarget& from, TargetPort& to, StripeId stripe,
                                  uint64_t& filed) {
  std::optional<StripeName> name;
  std::optional<uint32_t> copied;  // The generation.
  while (true) {
    auto found = co_await from.ReadFiled(stripe);
    const bool gone = found.code() == Code::kNotFound ||
                      parts_.index.ReportOn(stripe).kind != StripeReport::Kind::kFiled;
    // Removed meanwhile: its withdrawal may have been there before the copy.
    // The same for a home that is none any more: the new one files it there again, or not.
    const bool moved = !parts_.index.IsHome(stripe);
    if ((gone || moved) && name) co_return co_await to.Withdraw(*name);
    if (moved) co_return Status(Code::kUnavailable, "the run got another home meanwhile");
    if (gone) co_return Status();
    if (!found.ok()) co_return found.status();
    IndexedStripe copy = std::move(found).value();
    // Filed anew meanwhile: the copy may have come after what is newer.
    if (copied == copy.manifest.generation) break;
    copied = copy.manifest.generation;
    name = StripeName{copy.manifest.space, copy.manifest.run, stripe};
    const bool lost = co_await IsLost(copy.manifest);
    if (lost) co_return co_await parts_.index.Remove(*name, MissReason::kAbsent);
    KV_CO_RETURN_IF_ERROR(co_await to.Publish(std::move(copy), Durability::kProcess));
  }
  ++filed;
  co_return Status();
}

}  // namespace cairn::kv
