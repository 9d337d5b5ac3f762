// Simulated targets and a node on them, which can be crashed, wiped and started again.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kvstore/node/node.h"
#include "tests/sim/memory_metadata.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_workers.h"

namespace cairn::sim {

// Tells what happened, and when in virtual time, to someone who replays a seed.
class SimLog final : public kv::Log {
 public:
  explicit SimLog(const SimClock& clock) : clock_(clock) {}
  void Write(kv::LogLevel level, std::string_view message) override;
  void Enable() { enabled_ = true; }
  bool enabled() const { return enabled_; }

 private:
  const SimClock& clock_;
  bool enabled_ = false;
};

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
  // The process dies, or power is cut, shortly after the n-th write, sync or metadata write from
  // now has begun; 0: never.
  void CrashAtWrite(uint64_t n, CrashMode mode);
  // Told at each crash, with its kind.
  void SetOnCrash(std::function<void(CrashMode)> on_crash) { on_crash_ = std::move(on_crash); }
  // The process dies at once. Calls in flight must be awaited before Bury.
  void Crash(CrashMode mode);
  // Waits for what the dead process still had in flight, and makes the devices ready for the next.
  void Bury();
  // While the node is down: an empty device in the place of target `i`.
  void Wipe(uint32_t i);
  void WipeMetadata(uint32_t i) { metadata_[i]->Wipe(); }
  // Every call to target `i` fails from now on, until it is up again.
  void SetDown(uint32_t i, bool down);
  bool IsDown(uint32_t i) const { return metadata_[i]->is_down(); }
  // No target fails any more; the damage that was done stays.
  void Heal();

  kv::Node& node() { return *node_; }
  SimDisk& disk(uint32_t i) { return *disks_[i]; }
  SimClock& clock() { return clock_; }
  kv::Loop& loop() { return loop_; }
  SimLog& log() { return log_; }
  bool crashed() const { return crashed_; }
  uint64_t writes() const { return writes_; }
  uint32_t count() const override { return options_.targets; }

  kv::Task<kv::Result<kv::TargetMedium>> Open(uint32_t i) override;
  kv::Task<kv::Result<kv::TargetMedium>> Replace(uint32_t i, kv::Status why) override;
  kv::Task<kv::Result<kv::TargetMedium>> ForgetMetadata(uint32_t i, kv::Status why) override;

  // What the next node is opened with.
  kv::NodeOptions node_options;

 private:
  void CountWrite();

  const StoreWorldOptions options_;
  kv::Loop loop_;
  SimClock clock_;
  kv::Random random_;
  SimWorkers workers_;
  SimLog log_;
  std::vector<std::unique_ptr<SimDisk>> disks_;
  std::vector<std::unique_ptr<MemoryMetadata>> metadata_;
  std::unique_ptr<kv::Node> node_;
  bool crashed_ = false;
  bool crashing_ = false;
  uint64_t writes_ = 0;  // Of disks and metadata, with syncs.
  uint64_t crash_at_write_ = 0;
  CrashMode crash_mode_ = CrashMode::kProcess;
  std::function<void(CrashMode)> on_crash_;
};

}  // namespace cairn::sim
