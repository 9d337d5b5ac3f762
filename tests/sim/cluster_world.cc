// A process that is killed loses its network and its devices first, and is buried afterwards.
#include "tests/sim/cluster_world.h"

#include <cstdio>
#include <cstdlib>

namespace cairn::kv {
namespace {

constexpr uint64_t kSegmentSize = 4 * kMiB;
constexpr uint32_t kSegments = 24;

}  // namespace

// Printed where CAIRN_SIM_LOG is set.
class ClusterWorld::WorldLog final : public Log {
 public:
  explicit WorldLog(const sim::SimClock& clock) : clock_(clock) {}
  void Write(LogLevel, std::string_view message) override {
    static const bool loud = std::getenv("CAIRN_SIM_LOG") != nullptr;
    if (!loud) return;
    std::printf("%9.3f %.*s\n", static_cast<double>(clock_.Now().nanos) * 1e-9,
                static_cast<int>(message.size()), message.data());
  }

 private:
  const sim::SimClock& clock_;
};

WorldMachine::WorldMachine(Loop& loop, sim::SimClock& world, sim::SimNetwork& network, uint32_t n)
    : number(n),
      clock(world),
      disk(loop, world, {.size = 64 * kKiB + kSegments * kSegmentSize, .seed = n + 1, .id = n}),
      metadata(world, {.seed = n + 1000}),
      network_(network) {}

Task<Result<TargetMedium>> WorldMachine::Open(uint32_t) {
  TargetMedium medium;
  medium.disk = disk.Open();
  medium.metadata = metadata.Open();
  medium.label = "target-" + std::to_string(number);
  co_return medium;
}

Task<Result<TargetMedium>> WorldMachine::Replace(uint32_t i, Status) {
  disk.Wipe();
  metadata.Wipe();
  co_return co_await Open(i);
}

Task<Result<TargetMedium>> WorldMachine::ForgetMetadata(uint32_t i, Status) {
  metadata.Wipe();
  co_return co_await Open(i);
}

Result<Network*> WorldMachine::Open(NodeId self) {
  id = self;
  return &network_.node(self);
}

Task<void> WorldMachine::Stop() {
  network_.Crash(id);
  co_return;
}

ClusterWorld::ClusterWorld(Options options)
    : options_(options),
      clock_(loop_),
      random_(options.seed + 6),
      workers_(clock_, options.seed),
      network_(loop_, clock_, options.seed + 1),
      control_(clock_, options.seed + 2),
      log_(std::make_unique<WorldLog>(clock_)) {
  for (uint32_t n = 0; n < options.nodes; ++n) AddMachine();
}

ClusterWorld::~ClusterWorld() {
  for (uint32_t n = 0; n < machines_.size(); ++n) {
    if (machines_[n]->node != nullptr) Stop(n);
  }
  clock_.RunUntilIdle();
}

uint32_t ClusterWorld::AddMachine() {
  const auto n = static_cast<uint32_t>(machines_.size());
  machines_.push_back(std::make_unique<WorldMachine>(loop_, clock_, network_, n));
  return n;
}

ClusterOptions ClusterWorld::OptionsOf(uint32_t n) const {
  ClusterOptions options;
  options.agent.cluster = "tests";
  options.agent.self.name = "node-" + std::to_string(n);
  options.agent.self.rack = options.agent.self.name;
  options.agent.self.addresses = {"sim:" + std::to_string(n)};
  options.agent.lease_ttl = Seconds(5);
  options.agent.report_interval = Seconds(1);
  options.shape.group_bits = options_.group_bits;
  options.membership.lost_after = options_.lost_after;
  options.membership.weight_step = Seconds(1);
  options.tenure.lease_max = Seconds(10);
  if (change_options) change_options(options);
  return options;
}

Status ClusterWorld::Start(uint32_t n) {
  WorldMachine& machine = *machines_[n];
  const ClusterMember::Parts member_parts{.loop = loop_,
                                          .clock = machine.clock,
                                          .random = random_,
                                          .log = *log_,
                                          .control = control_.ClientOf(n, machine.clock),
                                          .links = machine};
  machine.member = std::make_unique<ClusterMember>(member_parts, OptionsOf(n));
  NodeOptions options;
  options.segment_size = kSegmentSize;
  options.reclaim.unpublished_age = Seconds(30);
  options.repair.skip_expiring_within = Seconds(1);
  options.store.cache.bytes_max = 0;
  const NodeParts parts{.loop = loop_,
                        .clock = machine.clock,
                        .workers = workers_,
                        .random = random_,
                        .log = *log_,
                        .media = machine,
                        .surroundings = machine.member.get()};
  auto node = Await(Node::Open(parts, options));
  if (!node.ok()) return node.status();
  machine.node = std::move(node).value();
  return Status();
}

void ClusterWorld::Stop(uint32_t n) {
  WorldMachine& machine = *machines_[n];
  (void)Await(machine.node->Stop());
  machine.node.reset();
  machine.member.reset();
}

void ClusterWorld::Crash(uint32_t n) {
  WorldMachine& machine = *machines_[n];
  control_.Cut(n);
  network_.Crash(machine.id);
  machine.disk.Crash(sim::CrashMode::kProcess);
  machine.metadata.Crash(sim::CrashMode::kProcess);
}

void ClusterWorld::Bury(uint32_t n) {
  WorldMachine& machine = *machines_[n];
  Await(machine.node->Abandon());
  machine.node.reset();
  machine.member.reset();
  machine.disk.Restart();
  control_.Heal(n);
}

void ClusterWorld::Kill(uint32_t n) {
  Crash(n);
  Bury(n);
}

bool ClusterWorld::AwaitThat(const std::function<bool()>& done, Nanos most) {
  const Instant deadline = clock_.Now() + most;
  while (!done() && clock_.Now() < deadline) RunFor(Millis(100));
  return done();
}

bool ClusterWorld::AwaitReady(Nanos most) {
  return AwaitThat(
      [this] {
        for (const auto& machine : machines_) {
          if (machine->node == nullptr) continue;
          if (!machine->member->view().WhyNotReady().empty()) return false;
        }
        return true;
      },
      most);
}

}  // namespace cairn::kv
