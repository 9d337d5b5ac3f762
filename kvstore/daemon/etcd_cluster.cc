// Makes the parts from what the configuration says.
#include "kvstore/daemon/etcd_cluster.h"

#include <algorithm>
#include <utility>

#include "kvstore/config/address_text.h"
#include "kvstore/control/etcd/etcd_store.h"
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
  options.slow.after = cluster.slow_after;
  options.repair_bytes_per_second = cluster.rebuild_bytes_per_second;
  if (cluster.protocol_max > 0) {
    const auto wished = static_cast<uint16_t>(cluster.protocol_max);
    options.protocol_max = std::min(options.protocol_max, wished);
  }
  return options;
}

}  // namespace

struct EtcdCluster::Core {
  explicit Core(Poller& poller) : workers(poller, kEtcdThreads) {}

  ThreadWorkers workers;
  std::unique_ptr<EtcdStore> control;
  std::unique_ptr<NodeTransport> transport;
  std::unique_ptr<ClusterMember> member;
};

EtcdCluster::EtcdCluster(const DaemonConfig& config, std::shared_ptr<const TlsContext> tls,
                         Log& log)
    : config_(config), tls_(std::move(tls)), log_(log) {}
EtcdCluster::~EtcdCluster() = default;

Result<Surroundings*> EtcdCluster::Open(const Parts& parts) {
  const ClusterConfig& cluster = config_.cluster;
  core_ = std::make_unique<Core>(parts.poller);
  const TransportParts transport_parts{parts.poller, parts.clock, log_, tls_};
  KV_ASSIGN_OR_RETURN(core_->transport, MakeTransport(config_, transport_parts));
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
                                          .links = *core_->transport};
  core_->member = std::make_unique<ClusterMember>(member_parts, OptionsOf(config_));
  return core_->member.get();
}

void EtcdCluster::Close() { core_.reset(); }

ClusterView EtcdCluster::view() const { return core_->member->view(); }
TransportStats EtcdCluster::transport_stats() const { return core_->transport->stats(); }
ClusterAdmin& EtcdCluster::admin() { return core_->member->admin(); }

}  // namespace cairn::kv
