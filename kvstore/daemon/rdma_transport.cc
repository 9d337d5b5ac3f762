// An RdmaNetwork that is made when this node's id is known.
#include <algorithm>
#include <utility>

#include "kvstore/config/address_text.h"
#include "kvstore/daemon/node_transport.h"
#include "kvstore/rdma/rdma_network.h"

namespace cairn::kv {
namespace {

// Pinning memory takes the loop's time, and a client may share much of it. So it is known in
// pieces: each is pinned when a call first uses it, and forgotten by itself. What lies across a
// border is registered for its call.
constexpr size_t kPieceSize = 64 * kMiB;

MutableByteSpan PieceAt(MutableByteSpan memory, size_t at) {
  return memory.subspan(at, std::min(kPieceSize, memory.size() - at));
}

class RdmaTransport final : public NodeTransport, public PayloadMemory {
 public:
  RdmaTransport(const TransportParts& parts, RdmaNetworkOptions options)
      : parts_(parts), options_(std::move(options)) {}

  Result<Network*> Open(NodeId self) override {
    options_.self = self;
    KV_ASSIGN_OR_RETURN(network_,
                        RdmaNetwork::Create(parts_.poller, parts_.clock, parts_.log, options_));
    return network_.get();
  }
  PayloadMemory* payload_memory() override { return this; }
  Status SetPeer(NodeId peer, const std::vector<std::string>& addresses) override {
    return network_->SetPeer(peer, addresses);
  }
  Task<void> Stop() override { return network_->Stop(); }
  TransportStats stats() const override {
    if (network_ == nullptr) return {};
    return {.network = network_->stats(), .devices = network_->stats()};
  }

  bool Add(MutableByteSpan memory) override {
    for (size_t at = 0; at < memory.size(); at += kPieceSize) {
      RdmaRegion region;
      region.memory = PieceAt(memory, at);
      if (network_->AddRegion(std::move(region)).ok()) continue;
      Remove(memory.first(at));
      return false;
    }
    return true;
  }
  void Remove(MutableByteSpan memory) override {
    for (size_t at = 0; at < memory.size(); at += kPieceSize) {
      network_->RemoveRegion(PieceAt(memory, at));
    }
  }

 private:
  const TransportParts parts_;
  RdmaNetworkOptions options_;
  std::unique_ptr<RdmaNetwork> network_;
};

}  // namespace

Result<std::unique_ptr<NodeTransport>> MakeRdmaTransport(const DaemonConfig& config,
                                                         std::string secret,
                                                         const TransportParts& parts) {
  RdmaNetworkOptions options;
  options.addresses = SplitList(config.cluster.listen);
  options.cluster = config.cluster.name;
  options.secret = std::move(secret);
  options.data_connections = config.cluster.data_connections;
  return std::unique_ptr<NodeTransport>(
      std::make_unique<RdmaTransport>(parts, std::move(options)));
}

}  // namespace cairn::kv
