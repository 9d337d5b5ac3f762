// Makes the parts from what the configuration says.
#include "kvstore/daemon/tcp_cluster.h"

#include <optional>
#include <utility>

#include "kvstore/config/address_text.h"
#include "kvstore/control/etcd/etcd_store.h"
#include "kvstore/daemon/certificates.h"
#include "kvstore/daemon/daemon_flags.h"
#include "kvstore/os/tcp_network.h"
#include "kvstore/os/thread_workers.h"

namespace cairn::kv {
namespace {

// Two watches (the map, the namespaces) and the coordinator's keep three of them busy.
constexpr uint32_t kEtcdThreads = 6;

std::vector<std::string> AddressesOf(const ClusterConfig& cluster) {
  return SplitList(cluster.advertise.empty() ? cluster.listen : cluster.advertise);
}

ClusterOptions OptionsOf(const DaemonConfig& config) {
  const ClusterConfig& cluster = config.cluster;
  ClusterOptions options;
  options.agent.cluster = cluster.name;
  options.agent.self.name = cluster.node;
  options.agent.self.rack = cluster.rack;
  options.agent.self.addresses = AddressesOf(cluster);
  options.agent.lease_ttl = cluster.lease;
  options.shape.group_bits = static_cast<uint8_t>(cluster.group_bits);
  options.membership.lost_after = cluster.lost_after;
  options.repair_bytes_per_second = cluster.rebuild_bytes_per_second;
  return options;
}

}  // namespace

// A TcpNetwork that is made when this node's id is known.
class TcpCluster::Links final : public NodeLinks {
 public:
  Links(const EmbeddedCluster::Parts& parts, Log& log, TcpNetworkOptions options)
      : parts_(parts), log_(log), options_(std::move(options)) {}

  Result<Network*> Open(NodeId self) override {
    options_.self = self;
    KV_ASSIGN_OR_RETURN(network_,
                        TcpNetwork::Create(parts_.poller, parts_.clock, log_, options_));
    log_.Info("cluster: other nodes reach this one at " + options_.listen +
              (options_.tls != nullptr ? ", with certificates, over TLS 1.3" : ""));
    return network_.get();
  }
  // A connection is made when it is needed, so an address that stays is not set again.
  Status SetPeer(NodeId peer, const std::vector<std::string>& addresses) override {
    if (addresses.empty()) return Status(Code::kInvalid, "it has no address");
    std::string& known = known_[peer];
    if (known == addresses.front()) return Status();
    KV_RETURN_IF_ERROR(network_->SetPeer(peer, addresses.front()));
    known = addresses.front();
    return Status();
  }
  Task<void> Stop() override { return network_->Stop(); }

 private:
  const EmbeddedCluster::Parts parts_;
  Log& log_;
  TcpNetworkOptions options_;
  std::unique_ptr<TcpNetwork> network_;
  std::map<NodeId, std::string> known_;
};

struct TcpCluster::Core {
  Core(const Parts& parts, Log& log, TcpNetworkOptions options)
      : workers(parts.poller, kEtcdThreads), links(parts, log, std::move(options)) {}

  ThreadWorkers workers;
  std::unique_ptr<EtcdStore> control;
  Links links;
  std::unique_ptr<ClusterMember> member;
};

TcpCluster::TcpCluster(const DaemonConfig& config, Log& log) : config_(config), log_(log) {}
TcpCluster::~TcpCluster() = default;

Result<Surroundings*> TcpCluster::Open(const Parts& parts) {
  const ClusterConfig& cluster = config_.cluster;
  TcpNetworkOptions network;
  network.listen = cluster.listen;
  network.cluster = cluster.name;
  network.data_connections = cluster.data_connections;
  if (!cluster.secret_file.empty()) {
    KV_ASSIGN_OR_RETURN(network.secret,
                        FirstLineOf("cluster.secret_file", cluster.secret_file));
  }
  KV_ASSIGN_OR_RETURN(network.tls, NodesTls(config_));
  core_ = std::make_unique<Core>(parts, log_, std::move(network));
  const EtcdOptions etcd{.endpoints = SplitList(cluster.etcd),
                         .ca_file = cluster.etcd_tls.ca_file,
                         .certificate_file = cluster.etcd_tls.cert_file,
                         .key_file = cluster.etcd_tls.key_file};
  KV_ASSIGN_OR_RETURN(core_->control, EtcdStore::Create(parts.clock, core_->workers, etcd));
  const ClusterMember::Parts member_parts{.loop = parts.poller.loop(),
                                          .clock = parts.clock,
                                          .random = parts.random,
                                          .log = log_,
                                          .control = *core_->control,
                                          .links = core_->links};
  core_->member = std::make_unique<ClusterMember>(member_parts, OptionsOf(config_));
  return core_->member.get();
}

void TcpCluster::Close() { core_.reset(); }

ClusterView TcpCluster::view() const { return core_->member->view(); }
ClusterAdmin& TcpCluster::admin() { return core_->member->admin(); }

}  // namespace cairn::kv
