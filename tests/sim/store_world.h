// Twelve simulated targets and a node on them, which can be crashed, wiped and started again.
#pragma once

#include <memory>
#include <vector>

#include "kvstore/node/node.h"
#include "tests/sim/memory_metadata.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_workers.h"

namespace cairn::sim {

struct StoreWorldOptions {
  uint64_t seed = 1;
  uint32_t targets = 12;
  uint64_t segment_size = 4 * kv::kMiB;
  uint32_t segments = 40;
};

// The machine outlives the process: Start and Crash alternate.
class StoreWorld final : public kv::MediaSource {
 public:
  explicit StoreWorld(const StoreWorldOptions& options);

  kv::Status Start();
  kv::Status Stop();
  // The process dies at once. Calls in flight must be awaited before Bury.
  void Crash(CrashMode mode);
  // Waits for what the dead process still had in flight, and makes the devices ready for the next.
  void Bury();
  // While the node is down: an empty device in the place of target `i`.
  void Wipe(uint32_t i);
  void WipeMetadata(uint32_t i) { metadata_[i]->Wipe(); }

  kv::Node& node() { return *node_; }
  SimDisk& disk(uint32_t i) { return *disks_[i]; }
  SimClock& clock() { return clock_; }
  kv::Loop& loop() { return loop_; }
  bool crashed() const { return crashed_; }
  uint32_t count() const override { return options_.targets; }

  kv::Task<kv::Result<kv::TargetMedium>> Open(uint32_t i) override;
  kv::Task<kv::Result<kv::TargetMedium>> Replace(uint32_t i, kv::Status why) override;
  kv::Task<kv::Result<kv::TargetMedium>> ForgetMetadata(uint32_t i, kv::Status why) override;

  // What the next node is opened with.
  kv::NodeOptions node_options;

 private:
  const StoreWorldOptions options_;
  kv::Loop loop_;
  SimClock clock_;
  kv::Random random_;
  SimWorkers workers_;
  kv::NullLog log_;
  std::vector<std::unique_ptr<SimDisk>> disks_;
  std::vector<std::unique_ptr<MemoryMetadata>> metadata_;
  std::unique_ptr<kv::Node> node_;
  bool crashed_ = false;
  bool crashing_ = false;
};

}  // namespace cairn::sim
