// A TcpNetwork that is made when this node's id is known.
#include <utility>

#include "kvstore/daemon/node_transport.h"
#include "kvstore/os/tcp_network.h"

namespace cairn::kv {
namespace {

class TcpTransport final : public NodeTransport {
 public:
  TcpTransport(const TransportParts& parts, TcpNetworkOptions options)
      : parts_(parts), options_(std::move(options)) {}

  Result<Network*> Open(NodeId self) override {
    options_.self = self;
    KV_ASSIGN_OR_RETURN(network_,
                        TcpNetwork::Create(parts_.poller, parts_.clock, parts_.log, options_));
    parts_.log.Info("cluster: other nodes reach this one at " + options_.listen +
                    (options_.tls != nullptr ? ", with certificates, over TLS 1.3" : ""));
    return network_.get();
  }
  Status SetPeer(NodeId peer, const std::vector<std::string>& addresses) override {
    return network_->SetPeer(peer, addresses.front());
  }
  Task<void> Stop() override { return network_->Stop(); }
  TransportStats stats() const override {
    if (network_ == nullptr) return {};
    return {.network = network_->stats()};
  }

 private:
  const TransportParts parts_;
  TcpNetworkOptions options_;
  std::unique_ptr<TcpNetwork> network_;
};

}  // namespace

Result<std::unique_ptr<NodeTransport>> MakeTcpTransport(const DaemonConfig& config,
                                                        std::string secret,
                                                        const TransportParts& parts) {
  TcpNetworkOptions options;
  options.listen = config.cluster.listen;
  options.cluster = config.cluster.name;
  options.secret = std::move(secret);
  options.data_connections = config.cluster.data_connections;
  options.tls = parts.tls;
  return std::unique_ptr<NodeTransport>(
      std::make_unique<TcpTransport>(parts, std::move(options)));
}

}  // namespace cairn::kv
