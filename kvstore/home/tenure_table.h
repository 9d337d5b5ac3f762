// Since when this node is the home of which groups, and when it may lease and evict there.
//
// Leases live in the memory of homes. So a new home evicts nothing for as long as a lease of the
// one before it may last; and it gives none until that one must know that it is no home any more.
// A restart makes a new home, too: its leases went with the process, and nobody told their holders.
// For that time a full store cannot make room in its groups: so a home's lease is short, and is to
// be renewed.
#pragma once

#include <vector>

#include "kvstore/client/home_tenure.h"
#include "kvstore/home/home_map.h"
#include "kvstore/io/clock.h"

namespace cairn::kv {

// The longest lease that any home gives: who asks for more gets so much.
inline constexpr Nanos kHomeLeaseMax = Seconds(60);

struct TenureOptions {
  Nanos lease_max = kHomeLeaseMax;
  Nanos node_lease = Seconds(10);  // How long a node takes itself for a member after its last word.
};

// Loop thread only. Both must outlive it.
class TenureTable final : public HomeTenure {
 public:
  TenureTable(const Clock& clock, const HomeMap& map, TenureOptions options);

  // The map has changed: call it before anything else is done under the new one.
  void Update();

  Tenure Of(uint16_t group_hash) const override;

 private:
  struct Group {
    uint64_t since = 0;  // The epoch; 0: this node was not the home.
    Instant from;
  };

  const Clock& clock_;
  const HomeMap& map_;
  const TenureOptions options_;
  std::vector<Group> groups_;
};

}  // namespace cairn::kv
