// By queue and room for shards, by rendezvous hashing for the index.
#include "kvstore/client/target_choice.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kvstore/base/checksum.h"

namespace cairn::kv {
namespace {

// Fewer operations in flight wins; among about equal queues, more free space.
bool IsBetter(const TargetState& a, const TargetState& b) {
  if (a.queue / 4 != b.queue / 4) return a.queue < b.queue;
  return a.free_bytes > b.free_bytes;
}

uint64_t Weight(const NamespaceId& space, const RunId& run, TargetId target) {
  const std::array<uint64_t, 5> words{space.high, space.low, run.high, run.low, target.value};
  std::array<uint8_t, sizeof(words)> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(words[i / 8] >> (8 * (i % 8)));
  }
  return Checksum(bytes);
}

}  // namespace

std::optional<std::vector<TargetId>> ChooseTargets(std::span<const TargetState> targets,
                                                   size_t count, Random& random) {
  std::vector<TargetState> rest;
  for (const TargetState& target : targets) {
    if (target.live) rest.push_back(target);
  }
  if (rest.size() < count) return std::nullopt;
  for (size_t i = rest.size(); i > 1; --i) std::swap(rest[i - 1], rest[random.Below(i)]);
  std::stable_sort(rest.begin(), rest.end(), IsBetter);
  std::vector<TargetId> chosen;
  for (size_t i = 0; i < count; ++i) chosen.push_back(rest[i].id);
  return chosen;
}

std::vector<TargetId> ReplicaOrder(const NamespaceId& space, const RunId& run,
                                   std::span<const TargetId> targets) {
  std::vector<std::pair<uint64_t, TargetId>> weighted;
  weighted.reserve(targets.size());
  for (const TargetId target : targets) weighted.emplace_back(Weight(space, run, target), target);
  std::sort(weighted.begin(), weighted.end(), std::greater<>());
  std::vector<TargetId> order;
  order.reserve(weighted.size());
  for (const auto& [weight, target] : weighted) order.push_back(target);
  return order;
}

}  // namespace cairn::kv
