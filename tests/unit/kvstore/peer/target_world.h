// Real targets on simulated disks, for nodes on any transport.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kvstore/node/local_target.h"
#include "kvstore/peer/map_view.h"
#include "tests/sim/memory_metadata.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_workers.h"
#include "tests/unit/kvstore/io/network_rig.h"

namespace cairn::kv {

// Its disks have a clock of their own, which stands still but in Run: so the network may be one of
// real time.
class TargetWorld {
 public:
  explicit TargetWorld(NetworkRig& rig) : rig_(rig), clock_(rig.loop()) {}
  ~TargetWorld() {
    for (const auto& target : targets_) (void)Await(target->log().Stop());
  }

  LocalTarget& AddTarget() {
    const uint64_t seed = targets_.size() + 1;
    constexpr uint64_t kSegmentSize = 4 * kMiB;
    const sim::SimDiskOptions disk_options{.size = 64 * kKiB + 16 * kSegmentSize, .seed = seed};
    disks_.push_back(std::make_unique<sim::SimDisk>(rig_.loop(), clock_, disk_options));
    const sim::MemoryMetadataOptions metadata_options{.seed = seed};
    metadata_.push_back(std::make_unique<sim::MemoryMetadata>(clock_, metadata_options));
    TargetMedium medium;
    medium.disk = disks_.back()->Open();
    medium.metadata = metadata_.back()->Open();
    const SegmentLog::Parts parts{.loop = rig_.loop(), .clock = clock_, .workers = workers_,
                                  .disk = *medium.disk, .metadata = *medium.metadata,
                                  .random = random_, .log = log_};
    const SegmentLogOptions log_options{.segment_size = kSegmentSize};
    auto log = Await(SegmentLog::Open(parts, log_options)).value();
    auto index = Await(IndexReplica::Open(*medium.metadata, workers_, log_)).value();
    targets_.push_back(std::make_unique<LocalTarget>(clock_, std::move(medium), std::move(log),
                                                     std::move(index)));
    return *targets_.back();
  }

  void RunUntil(const std::function<bool()>& done) {
    rig_.RunUntil([&] {
      for (;;) {
        rig_.loop().RunReady();
        if (done()) return true;
        if (!clock_.Step()) return false;
      }
    });
  }
  template <typename T>
  T Await(Task<T> task) {
    RunUntil([&task] { return task.done(); });
    return task.Take();
  }
  sim::SimDisk& disk(size_t i) { return *disks_[i]; }

 private:
  NetworkRig& rig_;
  sim::SimClock clock_;
  sim::SimWorkers workers_{clock_, 1};
  Random random_{77};
  NullLog log_;
  std::vector<std::unique_ptr<sim::SimDisk>> disks_;
  std::vector<std::unique_ptr<sim::MemoryMetadata>> metadata_;
  std::vector<std::unique_ptr<LocalTarget>> targets_;
};

// A map whose epoch a test sets.
class FakeMap final : public MapView {
 public:
  uint64_t epoch() const override { return now; }
  uint16_t protocol() const override { return spoken; }
  Bytes Encoded() const override {
    return Bytes::CopyOf(AsBytes(std::string(size, 'm') + " " + std::to_string(now)));
  }
  Status CheckIndexWriter(StripeId, uint64_t epoch) const override {
    if (epoch >= home_since) return Status();
    return Status(Code::kUnavailable, "another home");
  }
  void OnNewer(NodeId peer, uint64_t epoch) override { newer.emplace_back(peer, epoch); }

  uint64_t now = 1;
  uint16_t spoken = peer::kVersion;
  uint64_t home_since = 1;
  size_t size = 3;
  std::vector<std::pair<NodeId, uint64_t>> newer;
};

}  // namespace cairn::kv
