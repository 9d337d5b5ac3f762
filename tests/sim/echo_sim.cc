// Runs the echo service on simulated nodes under faults, and prints the trace hash of the run.
//
// usage: echo_sim [--seed N] [--steps N]     (200 steps unless told)
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "kvstore/base/checksum.h"
#include "tests/sim/echo_service.h"
#include "tests/sim/fault_plan.h"
#include "tests/sim/sim_network.h"
#include "tests/sim/sim_workers.h"

namespace cairn::sim {
namespace {

constexpr uint32_t kServers = 4;
constexpr kv::NodeId kClient{100};

struct Server {
  kv::NodeId id;
  std::unique_ptr<SimDisk> disk;
  std::unique_ptr<EchoService> service;
};

class EchoSim {
 public:
  explicit EchoSim(uint64_t seed)
      : random_(seed), network_(loop_, clock_, random_.Next()), workers_(clock_, random_.Next()),
        plan_(clock_, {.seed = random_.Next(), .targets = kServers, .faulty_targets_max = 2,
                       .kinds = {}}) {
    LinkOptions link;
    link.loss = static_cast<uint32_t>(random_.Below(50'000));
    link.repeat = static_cast<uint32_t>(random_.Below(50'000));
    link.reorder = static_cast<uint32_t>(random_.Below(50'000));
    network_.SetLinks(link);
    for (uint32_t i = 0; i < kServers; ++i) {
      const SimDiskOptions options{.size = kv::kMiB, .seed = random_.Next(), .id = i};
      Server server{.id = {i}, .disk = std::make_unique<SimDisk>(loop_, clock_, options),
                    .service = nullptr};
      kv::Network& network = network_.node(server.id);
      server.service = std::make_unique<EchoService>(network, *server.disk, workers_);
      server.service->Start();
      servers_.push_back(std::move(server));
    }
  }

  // False when an answer was wrong.
  bool Run(uint64_t steps) {
    bool exact = true;
    for (uint64_t step = 0; step < steps; ++step) {
      if (random_.Chance(1, 10)) Break();
      if (random_.Chance(1, 10)) Mend();
      exact = exact && CallOnce();
    }
    clock_.RunUntilIdle();
    return exact;
  }

  const Trace& trace() const { return clock_.trace(); }
  uint64_t answered() const { return answered_; }

 private:
  void Break() {
    const std::optional<Fault> fault = plan_.Next();
    if (!fault.has_value()) return;
    Server& server = servers_[fault->target];
    if (!ApplyToDisk(fault->kind, *server.disk)) network_.Isolate(server.id);
  }

  void Mend() {
    network_.HealAll();
    for (uint32_t i = 0; i < kServers; ++i) {
      HealDisk(*servers_[i].disk);
      plan_.Repaired(i);
    }
  }

  bool CallOnce() {
    kv::Bytes request(1 + random_.Below(3 * kSector));
    random_.Fill(request.span());
    const uint64_t digest = kv::Checksum(request.span());
    const kv::NodeId target = servers_[random_.Below(kServers)].id;
    const kv::Result<kv::Network::Answer> answer = clock_.Await(network_.node(kClient).Call(
        target, kv::Network::Outgoing(std::move(request)), kv::MutableByteSpan(),
        clock_.Now() + kv::Millis(20)));
    clock_.Note(TraceKind::kNote, target.value, static_cast<uint64_t>(answer.code()), digest);
    if (!answer.ok()) return true;
    ++answered_;
    return answer.value().body.size() == 1 + sizeof(digest) &&
           std::memcmp(answer.value().body.data() + 1, &digest, sizeof(digest)) == 0;
  }

  kv::Loop loop_;
  SimClock clock_{loop_};
  kv::Random random_;
  SimNetwork network_;
  SimWorkers workers_;
  FaultPlan plan_;
  std::vector<Server> servers_;
  uint64_t answered_ = 0;
};

}  // namespace
}  // namespace cairn::sim

int main(int argc, char** argv) {
  uint64_t seed = 1;
  uint64_t steps = 200;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seed") == 0) seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--steps") == 0) steps = std::strtoull(argv[i + 1], nullptr, 10);
  }
  cairn::sim::EchoSim sim(seed);
  const bool exact = sim.Run(steps);
  std::printf("seed %" PRIu64 " hash %016" PRIx64 " events %" PRIu64 " answered %" PRIu64
              " of %" PRIu64 "%s\n",
              seed, sim.trace().hash(), sim.trace().count(), sim.answered(), steps,
              exact ? "" : " WRONG ANSWER");
  return exact && sim.answered() > 0 ? 0 : 1;
}
