// Whoever looks after the simulated store: scrubs, repairs, deletes namespaces, sets the calendar.
// And in the end: a scrub after which nothing is degraded, and deletions that give all space back.
#pragma once

#include <cstdint>

#include "tests/sim/store_workload.h"

namespace cairn::sim {

struct OperatorStats {
  uint64_t drops = 0;
  uint64_t steps = 0;
};

// All arguments must outlive it.
class StoreOperator {
 public:
  StoreOperator(const Scenario& scenario, StoreWorld& world, StoreChecker& checker,
                StoreWorkload& workload)
      : scenario_(scenario), world_(world), checker_(checker), workload_(workload) {}

  // Goes on until the workload is told to end. Does only what the scenario has.
  kv::Task<void> Operate(uint64_t seed);
  // Also between two starts of the process.
  void StepClock(uint64_t seed);

  // --- With all faults over, and nobody else at work ---
  // One pass of scrub over everything; then no shard may be damaged any more.
  kv::Task<void> ScrubAll();
  // Deletes all there is, by chains or by namespaces: nothing may be left on any target then.
  kv::Task<void> DeleteAll();

  const OperatorStats& stats() const { return stats_; }

 private:
  kv::Task<void> DropSpace(uint32_t space);
  kv::Task<void> AwaitScrub();

  const Scenario& scenario_;
  StoreWorld& world_;
  StoreChecker& checker_;
  StoreWorkload& workload_;
  OperatorStats stats_;
};

}  // namespace cairn::sim
