// The control plane alone, 12 to 60 nodes: crashes, restarts, cuts, outages, clocks that drift.
//
// Safety while anything breaks: one coordinator at a time writes, epochs only grow, every map holds
// together, the breaker holds, and nobody is given up who may still take himself for home. Then
// liveness: once all is healed, all nodes have one map in which everybody is up and nothing moves.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kvstore/control/agent.h"
#include "kvstore/control/coordinator.h"
#include "kvstore/control/member_admin.h"
#include "tests/sim/sim_control_store.h"

namespace cairn::sim {
namespace {

using kv::Agent;
using kv::ClusterMap;
using kv::Coordinator;
using kv::Instant;
using kv::MemberState;
using kv::Nanos;
using kv::NodeId;
using kv::Random;
using kv::TargetId;

// A node's own clock: up to some percent faster or slower than the world's.
class DriftingClock final : public kv::Clock {
 public:
  DriftingClock(SimClock& clock, int64_t drift_per_mille)
      : clock_(clock), drift_(drift_per_mille) {}

  Instant Now() const override { return {Own(clock_.Now().nanos)}; }
  kv::UnixMillis UnixNow() const override { return clock_.UnixNow(); }
  kv::Task<void> SleepUntil(Instant wake_at, kv::Event* cancel) override {
    // Rounded up: never awake before its time.
    const int64_t world = wake_at.nanos / (1000 + drift_) * 1000 + 1000;
    return clock_.SleepUntil(wake_at == kv::kNever ? wake_at : Instant{world}, cancel);
  }

 private:
  int64_t Own(int64_t nanos) const { return nanos / 1000 * (1000 + drift_); }

  SimClock& clock_;
  const int64_t drift_;
};

class SimLog final : public kv::Log {
 public:
  SimLog(SimClock& clock, uint32_t id) : clock_(clock), id_(id) {}
  void Write(kv::LogLevel level, std::string_view message) override {
    static const bool loud = std::getenv("CAIRN_SIM_LOG") != nullptr;
    if (!loud) return;
    const double now = static_cast<double>(clock_.Now().nanos) * 1e-9;
    std::printf("%9.3f node %u %d: %.*s\n", now, id_, static_cast<int>(level),
                static_cast<int>(message.size()), message.data());
  }

 private:
  SimClock& clock_;
  const uint32_t id_;
};

constexpr Nanos kLeaseTtl = kv::Seconds(6);

// A machine, and the process on it while it runs.
struct Machine {
  Machine(SimClock& world, uint32_t number, int64_t drift, uint32_t target_count)
      : id(number), clock(world, drift), log(world, number), targets(target_count) {}

  const uint32_t id;
  DriftingClock clock;
  SimLog log;
  const uint32_t targets;
  std::unique_ptr<Agent> agent;  // Null while it is down.
  std::unique_ptr<Coordinator> coordinator;
  uint64_t epoch = 0;
};

class ControlWorld {
 public:
  explicit ControlWorld(uint64_t seed)
      : random_(seed), control_(clock_, random_.Next()), gate_(loop_) {
    shape_.group_bits = 6;
    shape_.data_shards = 10;
    control_.SetOnCommit([this](uint32_t id, const kv::Transaction& transaction) {
      CheckCommit(id, transaction);
    });
    const uint64_t count = 12 + random_.Below(49);
    for (uint32_t id = 1; id <= count; ++id) {
      const auto drift = static_cast<int64_t>(random_.Below(101)) - 50;
      const auto targets = static_cast<uint32_t>(1 + random_.Below(3));
      machines_.push_back(std::make_unique<Machine>(clock_, id, drift, targets));
      Boot(*machines_.back());
    }
  }

  void Pass(Nanos span) { clock_.RunUntil(clock_.Now() + span); }

  // One thing breaks or is mended.
  void Happen() {
    Machine& machine = *machines_[random_.Below(machines_.size())];
    switch (random_.Below(10)) {
      case 0: case 1: case 2:
        if (machine.agent != nullptr) {
          Crash(machine);
        } else {
          Boot(machine);
        }
        break;
      case 3: control_.Cut(machine.id); break;
      case 4: for (auto& each : machines_) control_.Heal(each->id); break;
      case 5: CrashLeader(); break;
      case 6: control_.GoDown(); break;
      case 7: ComeBack(); break;
      case 8: SetFaults(); break;
      default: break;
    }
    Pass(kv::Millis(static_cast<int64_t>(random_.Below(20'000))));
  }

  void Heal() {
    control_.SetFaults({});
    ComeBack();
    for (auto& machine : machines_) {
      control_.Heal(machine->id);
      if (machine->agent == nullptr) Boot(*machine);
    }
  }

  // Everybody has one map, in which everybody is up and nothing is on its way.
  bool IsWhole() {
    const std::shared_ptr<const ClusterMap> map = machines_[0]->agent->map();
    if (map == nullptr || map->nodes().size() != machines_.size()) return false;
    uint32_t leaders = 0;
    for (const auto& machine : machines_) {
      const auto own = machine->agent->map();
      if (own == nullptr || own->epoch() != map->epoch()) return false;
      if (!machine->agent->HoldsLease()) return false;
      leaders += machine->coordinator->leads() ? 1 : 0;
    }
    for (const kv::NodeEntry& node : map->nodes()) {
      if (node.state != MemberState::kUp) return false;
    }
    for (const kv::Group& group : map->groups()) {
      if (group.filling != 0 || map->HomeOf(group) == kv::kNoNode) return false;
    }
    return leaders == 1;
  }

  void GoDownFor(Nanos span, SimControl::Leases leases) {
    control_.GoDown();
    Pass(span);
    control_.ComeBack(leases);
  }

  uint64_t published() const { return published_; }
  uint64_t last_epoch() const { return last_epoch_; }
  uint64_t commits() const { return commits_; }
  size_t size() const { return machines_.size(); }

  void StopAll() {
    for (auto& machine : machines_) {
      if (machine->agent != nullptr) Crash(*machine);
    }
    clock_.Await(gate_.Close());
  }

 private:
  void Boot(Machine& machine) {
    kv::ControlStore& store = control_.ClientOf(machine.id, machine.clock);
    kv::AgentOptions options;
    options.cluster = "sim";
    options.self.name = "node-" + std::to_string(machine.id);
    options.lease_ttl = kLeaseTtl;
    options.report_interval = kv::Seconds(2);
    Machine* self = &machine;
    machine.agent = std::make_unique<Agent>(
        loop_, machine.clock, store, random_, machine.log, options,
        [this, self](std::shared_ptr<const ClusterMap> map) { OnMap(*self, *map); });
    std::vector<kv::TargetReport> targets;
    for (uint32_t i = 0; i < machine.targets; ++i) {
      kv::TargetReport report;
      report.target.id = {machine.id * 10 + i};
      report.target.capacity = kv::kTiB;
      targets.push_back(report);
    }
    machine.agent->SetTargets(targets);
    kv::CoordinatorOptions leader;
    leader.cluster = "sim";
    leader.self = {machine.id};
    leader.shape = shape_;
    leader.membership.lost_after = kv::Seconds(60);
    machine.coordinator = std::make_unique<Coordinator>(loop_, machine.clock, store, random_,
                                                        machine.log, leader);
    machine.epoch = 0;
    machine.coordinator->Start();
    gate_.Hold(StartAgent(machine.agent.get(), machine.clock.Now() + kv::Seconds(3600), machine));
  }

  kv::Task<void> StartAgent(Agent* agent, Instant deadline, Machine& machine) {
    booting_.insert(agent);
    const kv::Status started = co_await agent->Start(deadline);
    booting_.erase(agent);
    if (!started.ok()) machine.log.Error(started.ToString());
  }

  // The process is gone at once: nothing that it still asks for is heard.
  void Crash(Machine& machine) {
    if (booting_.contains(machine.agent.get())) return;  // It has done nothing yet.
    control_.Cut(machine.id);
    clock_.Await(machine.agent->Stop());
    clock_.Await(machine.coordinator->Stop());
    machine.agent.reset();
    machine.coordinator.reset();
    control_.Heal(machine.id);
  }

  void CrashLeader() {
    for (auto& machine : machines_) {
      if (machine->coordinator != nullptr && machine->coordinator->leads()) {
        Crash(*machine);
        return;
      }
    }
  }

  void ComeBack() {
    if (!control_.down()) return;
    const bool renewed = random_.Chance(1, 2);
    control_.ComeBack(renewed ? SimControl::Leases::kRenewed : SimControl::Leases::kRunOut);
  }

  void SetFaults() {
    ControlFaults faults;
    if (random_.Chance(1, 2)) faults.request_lost = static_cast<uint32_t>(random_.Below(100'000));
    if (random_.Chance(1, 2)) faults.answer_lost = static_cast<uint32_t>(random_.Below(100'000));
    if (random_.Chance(1, 2)) faults.request_late = static_cast<uint32_t>(random_.Below(100'000));
    control_.SetFaults(faults);
  }

  // A node does at once what a map asks of it.
  void OnMap(Machine& machine, const ClusterMap& map) {
    EXPECT_GT(map.epoch(), machine.epoch) << "epochs go back on node " << machine.id;
    machine.epoch = map.epoch();
    kv::NodeWork work;
    for (uint32_t i = 0; i < map.groups().size(); ++i) {
      const kv::Group& group = map.groups()[i];
      for (size_t place = 0; place < kv::kIndexReplicas; ++place) {
        const kv::TargetEntry* target = map.FindTarget(group.targets[place]);
        const bool own = target != nullptr && target->id.value / 10 == machine.id;
        if (own && group.IsFilling(place)) work.filled.push_back({i, target->id});
      }
    }
    for (const kv::TargetEntry& target : map.targets()) {
      if (target.state == MemberState::kLost) work.vacated.push_back({target.id, map.epoch()});
    }
    if (machine.agent != nullptr) machine.agent->SetWork(work);
  }

  // --- Safety ------------------------------------------------------------------

  void CheckCommit(uint32_t id, const kv::Transaction& transaction) {
    ++commits_;
    for (const kv::Change& change : transaction.changes) {
      if (change.key == keys_.MapHead()) CheckHead(id, change.value);
    }
  }

  void CheckHead(uint32_t id, const std::string& bytes) {
    const auto leader = control_.state().Range(keys_.Leader());
    ASSERT_EQ(leader.entries.size(), 1u) << "a map without a coordinator";
    EXPECT_EQ(kv::ControlKeys::IdOf(leader.entries[0].value), id) << "a deposed coordinator wrote";
    const auto head = kv::DecodeMapHead(bytes);
    ASSERT_TRUE(head.ok());
    EXPECT_EQ(head.value().epoch, last_epoch_ + 1);
    last_epoch_ = head.value().epoch;
    ++published_;
    std::vector<kv::Snapshot> snapshots;
    for (const std::string& name : head.value().part_names) {
      snapshots.push_back(control_.state().Range(keys_.MapParts() + name));
      ASSERT_EQ(snapshots.back().entries.size(), 1u) << "a head whose parts are not there";
    }
    std::vector<std::string_view> parts;
    for (const kv::Snapshot& part : snapshots) parts.push_back(part.entries[0].value);
    const auto map = kv::DecodeMap(head.value(), parts);
    ASSERT_TRUE(map.ok()) << map.status().ToString();
    CheckMap(*map.value());
    present_ = map.value();
  }

  void CheckMap(const ClusterMap& map) {
    std::set<NodeId> with_targets;
    for (const kv::TargetEntry& target : map.targets()) with_targets.insert(target.node);
    size_t lost = 0;
    size_t lost_before = 0;
    for (const kv::NodeEntry& node : map.nodes()) {
      const bool counts = node.state == MemberState::kLost && with_targets.contains(node.id);
      lost += counts ? 1 : 0;
      const kv::NodeEntry* before = present_ != nullptr ? present_->FindNode(node.id) : nullptr;
      lost_before += counts && before != nullptr && before->state == MemberState::kLost ? 1 : 0;
      if (node.state == MemberState::kSuspect) CheckNoDoubt(node);
    }
    if (lost > lost_before) {
      EXPECT_LE(lost, with_targets.size() / 4 + 1) << "the breaker";
    }
  }

  // Whoever is suspect cannot take himself for home any more.
  void CheckNoDoubt(const kv::NodeEntry& node) {
    const kv::NodeEntry* before = present_ != nullptr ? present_->FindNode(node.id) : nullptr;
    if (before == nullptr || before->state != MemberState::kUp) return;
    for (const auto& machine : machines_) {
      if (machine->agent == nullptr || machine->agent->id() != node.id) continue;
      const bool registered =
          !control_.state().Range(keys_.Reports() + kv::ControlKeys::Hex(node.id.value))
               .entries.empty();
      // Or it has come back between the coordinator's look and its word.
      EXPECT_TRUE(!machine->agent->HoldsLease() || registered)
          << "node " << node.id.value << " is suspect while it holds its lease";
    }
  }

  kv::Loop loop_;
  SimClock clock_{loop_};
  Random random_;
  SimControl control_;
  kv::ClusterShape shape_;
  const kv::ControlKeys keys_{"sim"};
  std::vector<std::unique_ptr<Machine>> machines_;
  std::set<Agent*> booting_;
  std::shared_ptr<const ClusterMap> present_;
  uint64_t last_epoch_ = 0;
  uint64_t published_ = 0;
  uint64_t commits_ = 0;
  kv::Gate gate_;
};

constexpr int kSettleSeconds = 240;

void ExpectWholeSoon(ControlWorld& world) {
  int seconds = 0;
  while (!world.IsWhole() && seconds < kSettleSeconds) {
    world.Pass(kv::Seconds(1));
    ++seconds;
  }
  EXPECT_TRUE(world.IsWhole()) << "not whole after " << kSettleSeconds << " s";
  // And it stays so: no map changes any more, but for weights of new targets.
  const uint64_t published = world.published();
  world.Pass(kv::Seconds(60));
  EXPECT_LE(world.published(), published + 4);
}

TEST(ControlSim, WhateverBreaksItIsSafeAndOnceHealedItIsWhole) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ControlWorld world(seed);
    ExpectWholeSoon(world);
    for (int i = 0; i < 40 && !::testing::Test::HasFailure(); ++i) world.Happen();
    world.Heal();
    ExpectWholeSoon(world);
    world.StopAll();
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(ControlSim, AnOutageStopsChangesAndEndsWithoutAStorm) {
  ControlWorld world(7);
  ExpectWholeSoon(world);
  const uint64_t epoch = world.last_epoch();
  const uint64_t commits = world.commits();
  world.GoDownFor(kv::Seconds(120), SimControl::Leases::kRunOut);
  EXPECT_EQ(world.last_epoch(), epoch);
  ExpectWholeSoon(world);
  // Everybody registers anew once; a few maps say so.
  EXPECT_LE(world.commits() - commits, 6 * world.size() + 60);
  EXPECT_LE(world.last_epoch(), epoch + 12);
  world.StopAll();
}

}  // namespace
}  // namespace cairn::sim
