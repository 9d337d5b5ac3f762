// Nodes of a simulated world.
#include "tests/sim/sim_network.h"
#include "tests/unit/kvstore/io/network_rig.h"

namespace cairn::kv {
namespace {

class SimRig final : public NetworkRig {
 public:
  ~SimRig() override { clock_.RunUntilIdle(); }

  Loop& loop() override { return loop_; }
  Clock& clock() override { return clock_; }
  Network& node(NodeId id) override { return network_.node(id); }
  void Kill(NodeId id) override { network_.Crash(id); }
  void RunUntil(const std::function<bool()>& done) override {
    loop_.RunReady();
    KV_CHECK(done() || clock_.RunUntil(done));
  }

 private:
  Loop loop_;
  sim::SimClock clock_{loop_};
  sim::SimNetwork network_{loop_, clock_, 1};
};

}  // namespace

std::unique_ptr<NetworkRig> MakeSimRig() { return std::make_unique<SimRig>(); }

}  // namespace cairn::kv
