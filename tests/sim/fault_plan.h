// Chooses what breaks next: some kinds of fault in each run, within a budget of faulty targets.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "kvstore/base/random.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_disk.h"

namespace cairn::sim {

enum class FaultKind : uint8_t {
  kReadErrors,
  kWriteErrors,
  kBitFlips,
  kTornWrites,
  kLostWrites,
  kMisdirectedWrites,
  kFull,
  kSlow,  // Harms nothing, so it is outside the budget.
  kProcessCrash,
  kPowerCut,
  kWipe,
  kPartition,
};
inline constexpr uint32_t kFaultKindCount = 12;

struct Fault {
  FaultKind kind;
  uint32_t target;
};

struct FaultPlanOptions {
  uint64_t seed = 1;
  uint32_t targets = 0;
  // How many targets may be faulty at once, unless `budget` says otherwise.
  uint32_t faulty_targets_max = 0;
  // The kinds to draw from; empty means all. About half of them are off in each run (swarm).
  std::vector<FaultKind> kinds;
};

// A target is faulty from the moment a fault is drawn for it until Repaired: crashed, partitioned,
// corrupt and never-written all count, and a repair counts only once it is durable.
class FaultPlan {
 public:
  // True when `target` may become faulty while `faulty` already are. The test that knows the
  // stripes says how to keep at most m shards of each acknowledged one bad.
  using Budget = std::function<bool(uint32_t target, const std::set<uint32_t>& faulty)>;

  FaultPlan(SimClock& clock, const FaultPlanOptions& options);
  void SetBudget(Budget budget) { budget_ = std::move(budget); }

  // The next fault, or nothing when the budget allows none. The caller brings it about.
  std::optional<Fault> Next();
  // Whole again: every shard that should be there is there, exact and durable.
  void Repaired(uint32_t target) { faulty_.erase(target); }

  bool enabled(FaultKind kind) const;
  const std::set<uint32_t>& faulty() const { return faulty_; }

 private:
  bool MayFail(uint32_t target, FaultKind kind) const;

  SimClock& clock_;
  const FaultPlanOptions options_;
  kv::Random random_;
  Budget budget_;
  std::vector<FaultKind> enabled_;
  std::set<uint32_t> faulty_;
};

// Brings about those kinds that concern one disk alone. False for the others (kPartition).
// Crashes leave the disk down.
bool ApplyToDisk(FaultKind kind, SimDisk& disk);
// No more faults of that disk, and up again; damage that was done stays.
void HealDisk(SimDisk& disk);

}  // namespace cairn::sim
