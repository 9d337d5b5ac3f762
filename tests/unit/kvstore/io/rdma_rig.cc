// Nodes of one process over RDMA ports of this machine.
#include <cstdlib>
#include <sstream>

#include "kvstore/rdma/rdma_network.h"
#include "tests/unit/kvstore/io/network_rig.h"
#include "tests/unit/kvstore/io/real_rig.h"

namespace cairn::kv {
namespace {

// "10.77.0.1 10.77.0.2": nodes take them in turn.
std::vector<std::string> PortAddresses() {
  const char* const given = std::getenv("CAIRN_RDMA_ADDRESSES");
  std::istringstream words(given == nullptr ? "" : given);
  std::vector<std::string> addresses;
  for (std::string word; words >> word;) addresses.push_back(word);
  return addresses;
}

class RdmaRig final : public RealRig<RdmaNetwork> {
 public:
  explicit RdmaRig(std::vector<std::string> addresses)
      : RealRig(PollerEngine::kAuto), addresses_(std::move(addresses)) {}

 private:
  std::unique_ptr<RdmaNetwork> Make(NodeId id, uint16_t port) override {
    const RdmaNetworkOptions options{.self = id,
                                     .addresses = {AddressOf(id, port)},
                                     .cluster = "rig",
                                     .secret = "a secret of the test rig",
                                     .connect_timeout = Seconds(10),  // Of an emulated machine.
                                     .reconnect_after = Millis(50),
                                     .ack_timeout = 16};
    return RdmaNetwork::Create(poller(), clock(), log(), options).value();
  }
  Status Introduce(RdmaNetwork& node, NodeId other, uint16_t port) override {
    return node.SetPeer(other, {AddressOf(other, port)});
  }
  std::string AddressOf(NodeId id, uint16_t port) const {
    return addresses_[(id.value - 1) % addresses_.size()] + ":" + std::to_string(port);
  }

  const std::vector<std::string> addresses_;
};

}  // namespace

std::unique_ptr<NetworkRig> MakeRdmaRig() {
  std::vector<std::string> addresses = PortAddresses();
  if (addresses.empty()) return nullptr;
  return std::make_unique<RdmaRig>(std::move(addresses));
}

}  // namespace cairn::kv
