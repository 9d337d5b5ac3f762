// Compares the map with what was here before; one walk over the replicas counts what came and went.
#include "kvstore/cluster/home_groups.h"

#include <algorithm>
#include <utility>

namespace cairn::kv {

HomeGroups::HomeGroups(const Clock& clock, const HomeMap& homes, TenureOptions options,
                       std::function<bool()> holds_lease)
    : homes_(homes),
      table_(clock, homes, options),
      clock_(clock),
      holds_lease_(std::move(holds_lease)),
      groups_(size_t{1} << homes.group_bits()) {}

Tenure HomeGroups::Of(uint16_t group_hash) const {
  const Group& group = groups_[size_t{group_hash} >> (16 - homes_.group_bits())];
  Tenure tenure = table_.Of(group_hash);
  tenure.here = tenure.here && group.since != 0;
  tenure.whole = tenure.whole && group.compared;
  if (!holds_lease_()) tenure.leases_from = kNever;
  return tenure;
}

void HomeGroups::Begin(Home& home, const LocalTargets& own) {
  home_ = &home;
  own_ = &own;
}

void HomeGroups::End() { home_ = nullptr; }

void HomeGroups::Update(const ClusterMap& map) {
  table_.Update();
  if (home_ == nullptr) return;
  std::vector<Turn> turns(groups_.size());
  for (size_t i = 0; i < groups_.size(); ++i) {
    const kv::Group& entry = map.groups()[i];
    const bool here = map.HomeOf(entry) == homes_.self();
    const uint64_t since = here ? std::max<uint64_t>(1, entry.since) : 0;
    Group& group = groups_[i];
    if (group.since == since) continue;
    if (group.since == 0) turns[i] = {Turn::Kind::kComes, entry.targets[0]};
    if (since == 0) turns[i] = {Turn::Kind::kGoes, group.replica};
    group = {.since = since, .replica = here ? entry.targets[0] : TargetId()};
  }
  Count(turns, map);
}

void HomeGroups::Count(const std::vector<Turn>& turns, const ClusterMap& map) {
  const auto moves = [](const Turn& turn) { return turn.kind != Turn::Kind::kStays; };
  if (std::none_of(turns.begin(), turns.end(), moves)) return;
  const auto now = static_cast<uint32_t>(clock_.UnixNow().value / 1000);
  for (const auto& target : *own_) {
    const auto count = [&](StripeId stripe, const StripeState& state) {
      const Turn& turn = turns[map.GroupIndexOf(GroupHashOf(stripe))];
      if (turn.replica != target->id()) return true;
      if (turn.kind == Turn::Kind::kComes) home_->index().CountIn(stripe);
      if (turn.kind == Turn::Kind::kGoes) {
        home_->ledger().Remove(state.space, {state.payload_bytes, state.keep_until}, now);
      }
      return true;
    };
    target->index().states().ForEachAfter(std::nullopt, count);
  }
}

std::vector<uint32_t> HomeGroups::Here() const {
  std::vector<uint32_t> here;
  for (uint32_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].since != 0) here.push_back(i);
  }
  return here;
}

void HomeGroups::NoteCompared(uint32_t group, uint64_t since) {
  if (groups_[group].since == since) groups_[group].compared = true;
}

}  // namespace cairn::kv
