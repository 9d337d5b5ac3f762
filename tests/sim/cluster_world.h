// Whole nodes of a cluster in virtual time: simulated devices, network and control store.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kvstore/cluster/cluster_member.h"
#include "kvstore/node/node.h"
#include "tests/sim/memory_metadata.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_control_store.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_network.h"
#include "tests/sim/sim_workers.h"

namespace cairn::kv {

// A machine's own calendar, which may be wrong; its steady clock is the world's.
class SkewedClock final : public Clock {
 public:
  explicit SkewedClock(sim::SimClock& world) : world_(world) {}

  Instant Now() const override { return world_.Now(); }
  UnixMillis UnixNow() const override { return {world_.UnixNow().value + skew_millis}; }
  Task<void> SleepUntil(Instant wake_at, Event* cancel) override {
    return world_.SleepUntil(wake_at, cancel);
  }

  int64_t skew_millis = 0;

 private:
  sim::SimClock& world_;
};

// One device, which outlives the processes on it.
class WorldMachine final : public MediaSource, public NodeLinks {
 public:
  WorldMachine(Loop& loop, sim::SimClock& world, sim::SimNetwork& network, uint32_t number);

  uint32_t count() const override { return 1; }
  Task<Result<TargetMedium>> Open(uint32_t i) override;
  Task<Result<TargetMedium>> Replace(uint32_t i, Status why) override;
  Task<Result<TargetMedium>> ForgetMetadata(uint32_t i, Status why) override;

  Result<Network*> Open(NodeId self) override;
  Status SetPeer(NodeId, const std::vector<std::string>&) override { return Status(); }
  Task<void> Stop() override;

  const uint32_t number;
  NodeId id;  // Once it has joined.
  SkewedClock clock;
  sim::SimDisk disk;
  sim::MemoryMetadata metadata;
  std::unique_ptr<ClusterMember> member;
  std::unique_ptr<Node> node;  // Null while it is down.

 private:
  sim::SimNetwork& network_;
};

class ClusterWorld {
 public:
  struct Options {
    uint32_t nodes = 4;
    uint8_t data_shards = 2;
    uint8_t parity_shards = 2;
    uint8_t group_bits = 4;
    Nanos lost_after = Seconds(60);
    uint64_t seed = 1;
  };
  explicit ClusterWorld(Options options);
  ~ClusterWorld();

  // Machines count from 0.
  Status Start(uint32_t n);
  void Stop(uint32_t n);
  // As kill -9 does: what is called there ends soon, and once nothing is the rest may go.
  void Crash(uint32_t n);
  void Bury(uint32_t n);
  void Kill(uint32_t n);
  uint32_t AddMachine();
  // Until every running node is ready, or the time is up.
  bool AwaitReady(Nanos most);
  // Until `done`.
  bool AwaitThat(const std::function<bool()>& done, Nanos most);

  WorldMachine& machine(uint32_t n) { return *machines_[n]; }
  BlockStore& store(uint32_t n) { return machines_[n]->node->store(); }
  size_t size() const { return machines_.size(); }
  sim::SimClock& clock() { return clock_; }
  sim::SimControl& control() { return control_; }
  sim::SimNetwork& network() { return network_; }
  Random& random() { return random_; }
  ClusterOptions OptionsOf(uint32_t n) const;
  // Of nodes that are started from now on.
  std::function<void(ClusterOptions&)> change_options = {};
  template <typename T>
  T Await(Task<T> task) {
    return clock_.Await(std::move(task));
  }
  void RunFor(Nanos time) { clock_.RunUntil(clock_.Now() + time); }

 private:
  class WorldLog;

  const Options options_;
  Loop loop_;
  sim::SimClock clock_;
  Random random_;
  sim::SimWorkers workers_;
  sim::SimNetwork network_;
  sim::SimControl control_;
  std::unique_ptr<Log> log_;
  std::vector<std::unique_ptr<WorldMachine>> machines_;
};

}  // namespace cairn::kv
