// A whole cluster in virtual time, from one seed: clients put, get and delete while nodes crash,
// are cut off, slow, upgraded, lose their disks and disagree about the time, and etcd comes and
// goes.
//
// Usage: cluster_sim SEED HISTORY [NODES]
// Writes what was done and got to HISTORY, which tests/support/history.py judges. Exits with 1 when
// the cluster does not become whole in time: that is judged here.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/cluster_work.h"

namespace cairn::kv {
namespace {

constexpr uint32_t kRounds = 6;
constexpr Nanos kSettleMax = Seconds(300);
constexpr uint32_t kBudget = 2;

// What breaks, and is mended; within the fault budget.
class Troubles {
 public:
  Troubles(ClusterWorld& world, ClusterWork& work, uint64_t seed)
      : world_(world), work_(work), random_(seed) {}

  // One or two nodes at once, and perhaps what harms nobody beside them.
  void Round() {
    const Instant began = world_.clock().Now();
    StepCalendars();
    std::set<uint32_t> nodes;
    const uint64_t count = 1 + random_.Below(kBudget);
    while (nodes.size() < count) nodes.insert(Draw());
    const bool etcd_goes = random_.Chance(1, 4);
    if (random_.Chance(1, 3)) SlowDown(Draw());
    if (etcd_goes) world_.control().GoDown();
    std::vector<uint32_t> down;
    for (const uint32_t n : nodes) Break(n, down);
    world_.RunFor(Millis(static_cast<int64_t>(random_.Below(40'000))));
    if (etcd_goes) {
      world_.control().ComeBack(random_.Chance(1, 2) ? sim::SimControl::Leases::kRenewed
                                                     : sim::SimControl::Leases::kRunOut);
      work_.NoteChange();
    }
    world_.network().HealAll();
    for (uint32_t n = 0; n < world_.size(); ++n) world_.control().Heal(n);
    for (const uint32_t n : down) Start(n);
    Settle(nodes, began);
    world_.network().SetLinks({});
  }

  // Any two may be away now, and all can be read.
  void KillTwoForGood() {
    const Instant began = world_.clock().Now();
    std::set<uint32_t> nodes;
    while (nodes.size() < kBudget) nodes.insert(Draw());
    for (const uint32_t n : nodes) Kill(n);
    for (const uint32_t n : nodes) work_.NoteFault(n, began, kNever);
  }

  const std::string& problem() const { return problem_; }

 private:
  // The coordinator is as likely as all others together.
  uint32_t Draw() {
    if (random_.Chance(1, 3)) {
      for (uint32_t n = 0; n < world_.size(); ++n) {
        if (IsUp(n) && world_.machine(n).member->view().coordinates) return n;
      }
    }
    return static_cast<uint32_t>(random_.Below(world_.size()));
  }
  bool IsUp(uint32_t n) const { return world_.machine(n).node != nullptr; }

  void Break(uint32_t n, std::vector<uint32_t>& down) {
    switch (random_.Below(7)) {
      case 0: case 1:
        Tell("kill", n);
        Kill(n);
        down.push_back(n);
        break;
      case 2:
        Tell("stop, to run another version", n);
        work_.Leave(n);
        world_.Stop(n);
        down.push_back(n);
        break;
      case 3:
        Tell("isolate", n);
        world_.network().Isolate(world_.machine(n).id);
        world_.control().Cut(n);
        break;
      case 4: CutOneWay(n); break;
      case 5:
        Tell("cut off from etcd", n);
        world_.control().Cut(n);
        break;
      default:
        Tell("empty the disk of", n);
        Kill(n);
        world_.machine(n).disk.Wipe();
        world_.machine(n).metadata.Wipe();
        work_.NoteLost(n);
        down.push_back(n);
        break;
    }
  }

  void CutOneWay(uint32_t n) {
    const bool deaf = random_.Chance(1, 2);
    Tell(deaf ? "deafen" : "silence", n);
    const NodeId id = world_.machine(n).id;
    for (uint32_t other = 0; other < world_.size(); ++other) {
      if (other == n) continue;
      const NodeId peer = world_.machine(other).id;
      world_.network().Cut(deaf ? peer : id, deaf ? id : peer);
    }
  }

  void SlowDown(uint32_t n) {
    Tell("slow down", n);
    const auto latency = Millis(static_cast<int64_t>(1 + random_.Below(60)));
    const sim::LinkOptions far{.latency_min = latency, .latency_max = latency + Millis(5)};
    const NodeId id = world_.machine(n).id;
    for (uint32_t other = 0; other < world_.size(); ++other) {
      if (other == n) continue;
      world_.network().SetLink(world_.machine(other).id, id, far);
      world_.network().SetLink(id, world_.machine(other).id, far);
    }
  }

  // Calendars are up to so much before or behind the world's.
  void StepCalendars() {
    for (uint32_t n = 0; n < world_.size(); ++n) {
      if (random_.Chance(2, 3)) continue;
      const auto skew = static_cast<int64_t>(random_.Below(2 * kSkewMillisMax + 1));
      world_.machine(n).clock.skew_millis = skew - kSkewMillisMax;
    }
  }

  void Kill(uint32_t n) {
    world_.Crash(n);
    work_.Leave(n);
    world_.Bury(n);
  }

  void Start(uint32_t n) {
    const uint16_t version = random_.Chance(1, 2) ? uint16_t{1} : peer::kVersion;
    world_.change_options = [version](ClusterOptions& options) { options.protocol_max = version; };
    const Status started = world_.Start(n);
    if (started.ok()) return work_.Enter(n);
    Fail("node " + std::to_string(n) + " does not start: " + started.ToString());
  }

  // Everybody up, every group led and whole, and every stripe.
  void Settle(const std::set<uint32_t>& nodes, Instant began) {
    const bool settled = world_.AwaitThat([this] { return WhyNotWhole().empty(); }, kSettleMax);
    if (!settled) Fail("not whole after 300 s: " + WhyNotWhole());
    for (const uint32_t n : nodes) work_.NoteFault(n, began, world_.clock().Now());
    if (settled) work_.NoteRepaired();
  }

  std::string WhyNotWhole() const {
    for (uint32_t n = 0; n < world_.size(); ++n) {
      const std::string name = "node " + std::to_string(n);
      if (!IsUp(n)) return name + " is down";
      ClusterView view = world_.machine(n).member->view();
      if (!view.WhyNotReady().empty()) return name + ": " + view.WhyNotReady();
      if (view.groups_filling > 0) return name + " sees groups that are being filled";
      if (view.targets.size() != 1 || view.targets[MemberState::kUp] != world_.size()) {
        return name + " sees targets that are not up";
      }
      const uint64_t lacking = world_.machine(n).node->stats().stripes_lacking;
      if (lacking > 0) return name + ": " + std::to_string(lacking) + " stripes lack shards";
      const auto& repair = world_.machine(n).node->repairer().status();
      if (repair.running) return name + " repairs";
    }
    return "";
  }

  void Tell(const char* what, uint32_t n) {
    if (std::getenv("CAIRN_SIM_LOG") == nullptr) return;
    std::printf("%9.3f *** %s node %u\n", static_cast<double>(world_.clock().Now().nanos) * 1e-9,
                what, n);
  }
  void Fail(const std::string& what) {
    if (problem_.empty()) problem_ = what;
  }

  static constexpr int64_t kSkewMillisMax = 2'000;

  ClusterWorld& world_;
  ClusterWork& work_;
  Random random_;
  std::string problem_;
};

std::string Run(uint64_t seed, uint32_t nodes, const std::string& path) {
  ClusterWorld::Options options;
  options.nodes = nodes;
  options.data_shards = 10;
  options.group_bits = 5;
  options.lost_after = Seconds(25);
  options.seed = seed;
  ClusterWorld world(options);
  const auto history = sim::HistoryLog::Create(path, world.clock());
  if (history == nullptr) return "cannot write " + path;
  for (uint32_t n = 0; n < nodes; ++n) {
    if (!world.Start(n).ok()) return "node " + std::to_string(n) + " does not start";
  }
  if (!world.AwaitReady(Seconds(60))) return "the cluster does not form";
  ClusterWork work(world, *history, seed);
  for (uint32_t n = 0; n < nodes; ++n) work.Enter(n);
  Troubles troubles(world, work, seed + 100);
  for (uint32_t round = 0; round < kRounds && troubles.problem().empty(); ++round) troubles.Round();
  work.End();
  if (troubles.problem().empty()) {
    troubles.KillTwoForGood();
    world.RunFor(Seconds(30));  // Until others are the homes of what they were.
    work.ReadAll();
  }
  std::printf("seed %" PRIu64 ": %u nodes, %" PRIu64 " operations, %.0f s\n", seed, nodes,
              work.operations(), static_cast<double>(world.clock().Now().nanos) * 1e-9);
  return troubles.problem();
}

}  // namespace
}  // namespace cairn::kv

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: cluster_sim SEED HISTORY [NODES]\n");
    return 2;
  }
  const uint64_t seed = std::strtoull(argv[1], nullptr, 10);
  // Most are small, since every node costs time.
  const auto drawn = static_cast<uint32_t>(12 + (seed % 8 == 0 ? seed % 49 : seed % 5));
  const auto nodes = argc > 3 ? static_cast<uint32_t>(std::strtoul(argv[3], nullptr, 10)) : drawn;
  const std::string problem = cairn::kv::Run(seed, nodes, argv[2]);
  if (!problem.empty()) std::printf("seed %" PRIu64 ": %s\n", seed, problem.c_str());
  return problem.empty() ? 0 : 1;
}
