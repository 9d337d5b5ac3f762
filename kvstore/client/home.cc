// Puts the parts of a home together.
#include "kvstore/client/home.h"

namespace cairn::kv {

Home::Home(Parts parts, HomeOptions options)
    : clock_(parts.clock),
      leases_(parts.random, options.leases),
      spaces_(parts.random),
      ledger_(options.kept_bytes_max),
      index_({.loop = parts.loop,
              .clock = parts.clock,
              .targets = parts.targets,
              .placement = parts.placement,
              .tenure = parts.tenure,
              .stats = stats_,
              .leases = leases_,
              .spaces = spaces_,
              .ledger = ledger_},
             options.index_cache_bytes),
      sweeper_({.loop = parts.loop,
                .clock = parts.clock,
                .log = parts.log,
                .placement = parts.placement,
                .index = index_,
                .registry = spaces_,
                .ledger = ledger_,
                .stats = stats_}) {}

void Home::AddStats(StoreStats& stats) {
  const LeaseStats& leases = leases_.Stats(clock_.Now());
  stats.leases_active = leases.active;
  stats.leased_bytes = leases.bytes;
  stats.leases_granted = leases.granted;
  stats.leases_refused = leases.refused;
  stats.leases_expired = leases.expired;
  stats.leases_ended = leases.ended;
  const auto now = static_cast<uint32_t>(clock_.UnixNow().value / 1000);
  stats.kept_bytes = ledger_.KeptBytes(now);
  stats.quota_evictions = sweeper_.quota_evictions();
  stats.stripes_lacking = index_.lacking().size();
}

}  // namespace cairn::kv
