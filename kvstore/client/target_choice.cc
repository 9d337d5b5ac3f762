// By queue and room for shards, by rendezvous hashing for the index.
#include "kvstore/client/target_choice.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kvstore/base/checksum.h"

namespace cairn::kv {
namespace {

// A target is due when others were chosen so often in a row, and twice as often as by turns.
constexpr size_t kPassedOverMax = 16;
constexpr size_t kRemembered = 1 << 16;  // Targets, of those that have left too.

uint64_t Weight(const NamespaceId& space, const RunId& run, TargetId target) {
  const std::array<uint64_t, 5> words{space.high, space.low, run.high, run.low, target.value};
  std::array<uint8_t, sizeof(words)> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(words[i / 8] >> (8 * (i % 8)));
  }
  return Checksum(bytes);
}

}  // namespace

bool TargetChooser::IsBetter(const Candidate& a, const Candidate& b) {
  if (a.state.queue / 4 != b.state.queue / 4) return a.state.queue < b.state.queue;
  if (a.is_due != b.is_due) return a.is_due;
  return a.state.free_bytes > b.state.free_bytes;
}

std::optional<std::vector<TargetId>> TargetChooser::Choose(std::span<const TargetState> targets,
                                                           size_t count, Random& random) {
  std::vector<Candidate> rest;
  uint64_t most_room = 0;
  for (const TargetState& target : targets) {
    if (!target.live) continue;
    rest.push_back({.state = target});
    most_room = std::max(most_room, target.free_bytes);
  }
  if (rest.size() < count) return std::nullopt;
  if (passed_over_.size() > kRemembered) passed_over_.clear();
  const size_t due_at = std::max(kPassedOverMax, 2 * rest.size() / std::max<size_t>(1, count));
  for (Candidate& one : rest) {
    one.is_due =
        passed_over_[one.state.id.value] >= due_at && one.state.free_bytes >= most_room / 2;
  }
  for (size_t i = rest.size(); i > 1; --i) std::swap(rest[i - 1], rest[random.Below(i)]);
  std::stable_sort(rest.begin(), rest.end(), IsBetter);
  std::vector<TargetId> chosen;
  for (size_t i = 0; i < rest.size(); ++i) {
    const TargetId id = rest[i].state.id;
    if (i < count) chosen.push_back(id);
    size_t& passed_over = passed_over_[id.value];
    passed_over = i < count ? 0 : passed_over + 1;
  }
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
