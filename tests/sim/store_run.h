// One run of the store simulation: epochs of work under faults, each ended by a stop, a crash or a
// power cut; then all faults are over, and everything has to work.
#pragma once

#include <memory>
#include <string>

#include "tests/sim/store_operator.h"
#include "tests/sim/store_workload.h"

namespace cairn::sim {

// For a sweep: instead of what the seed draws, the process ends at a certain write.
struct CrashPoint {
  uint64_t write = 0;  // From the first start on. 0: none.
  CrashMode mode = CrashMode::kProcess;
};

class StoreRun {
 public:
  explicit StoreRun(const Scenario& scenario, CrashPoint crash = {});

  // Empty, or what went wrong.
  std::string Run();

  // Writes all that is done and got to this file, for tests/support/history.py. False when the file
  // cannot be made, and for what the history does not tell: calendars that are set, namespaces that
  // are deleted, blocks that are to be kept.
  bool Record(const std::string& path);
  void LogAll() { world_.log().Enable(); }
  const Trace& trace() { return world_.clock().trace(); }
  // Writes that were begun until the last epoch ended.
  uint64_t writes() const { return writes_; }
  std::string Summary() const;

 private:
  enum class Ending { kStop, kCrash, kPowerCut };

  void RunEpoch(uint64_t epoch);
  bool StartUnderFaults();
  void RunSessions();
  // Faults of the faulty targets come and go.
  kv::Task<void> Chaos(uint64_t seed);
  void DrawFaultsOf(uint32_t target, kv::Random& random);
  void EndEpoch();
  void CheckCalm(const kv::StoreStats& stats);
  void CheckEvictions();
  void CheckQuotas();
  void LoseTarget();
  // Faults are over: safety was checked all along, now liveness.
  void Settle();
  // The node that is started for that does all it has to do.
  void CheckLiveness();
  void Await(kv::Task<void> task);
  void Await(std::vector<kv::Task<void>> tasks);

  bool beyond() const { return scenario_.mode == StoreMode::kBeyond; }
  bool faults_now() const { return scenario_.style != FaultStyle::kCalm; }

  const Scenario& scenario_;
  const CrashPoint crash_;
  kv::Random random_;
  StoreWorld world_;
  StoreChecker checker_;
  StoreWorkload workload_;
  StoreOperator operator_;
  std::unique_ptr<HistoryLog> history_;  // Null: none is wanted.
  bool over_ = false;  // The present epoch.
  bool target_lost_ = false;
  uint64_t writes_ = 0;
  uint64_t degraded_ = 0;
  uint64_t evicted_ = 0;
  uint64_t crashes_ = 0;
  uint64_t crashes_before_ = 0;  // The present epoch.
};

}  // namespace cairn::sim
