// What one process is the home of: the index of its runs, the leases on them, what namespaces hold.
#pragma once

#include "kvstore/async/loop.h"
#include "kvstore/base/log.h"
#include "kvstore/base/units.h"
#include "kvstore/client/home_index.h"
#include "kvstore/client/lease_table.h"
#include "kvstore/client/space_ledger.h"
#include "kvstore/client/space_registry.h"
#include "kvstore/client/space_sweeper.h"

namespace cairn::kv {

struct HomeOptions {
  uint64_t index_cache_bytes = 64 * kMiB;
  LeaseLimits leases;
  uint64_t kept_bytes_max = UINT64_MAX;  // What stripes under a keep_until may occupy.
};

// Loop thread only.
class Home {
 public:
  // All must outlive it.
  struct Parts {
    Loop& loop;
    Clock& clock;
    Random& random;
    Log& log;
    TargetSet& targets;
    const Placement& placement;
    const HomeTenure& tenure;
  };
  Home(Parts parts, HomeOptions options);

  HomeIndex& index() { return index_; }
  LeaseTable& leases() { return leases_; }
  SpaceRegistry& spaces() { return spaces_; }
  SpaceLedger& ledger() { return ledger_; }
  SpaceSweeper& sweeper() { return sweeper_; }
  // Of the whole process: the store counts here too.
  StoreStats& stats() { return stats_; }

  // Adds what leases and namespaces count.
  void AddStats(StoreStats& stats);
  uint64_t memory_bytes() const { return index_.memory_bytes() + leases_.memory_bytes(); }

 private:
  Clock& clock_;
  StoreStats stats_;
  LeaseTable leases_;
  SpaceRegistry spaces_;
  SpaceLedger ledger_;
  HomeIndex index_;
  SpaceSweeper sweeper_;
};

}  // namespace cairn::kv
