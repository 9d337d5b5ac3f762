// Notes the moment at which a group came here.
#include "kvstore/home/tenure_table.h"

namespace cairn::kv {

TenureTable::TenureTable(const Clock& clock, const HomeMap& map, TenureOptions options)
    : clock_(clock), map_(map), options_(options), groups_(size_t{1} << map.group_bits()) {
  Update();
}

void TenureTable::Update() {
  for (size_t i = 0; i < groups_.size(); ++i) {
    const auto hash = static_cast<uint16_t>(i << (16 - map_.group_bits()));
    const bool here = map_.HomeOf(hash) == map_.self();
    const uint64_t since = here ? map_.HomeSince(hash) : 0;
    if (groups_[i].since != since) groups_[i] = {since, clock_.Now()};
  }
}

Tenure TenureTable::Of(uint16_t group_hash) const {
  const Group& group = groups_[size_t{group_hash} >> (16 - map_.group_bits())];
  return {.here = map_.HomeOf(group_hash) == map_.self(),
          .since = group.since,
          .evicts_from = group.from + options_.lease_max,
          .leases_from = group.from + options_.node_lease,
          .whole = map_.IsWhole(group_hash)};
}

}  // namespace cairn::kv
