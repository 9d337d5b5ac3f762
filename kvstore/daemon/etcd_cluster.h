// The cluster of one `cairnd`: etcd beneath, a transport between the nodes.
#pragma once

#include <memory>

#include "kvstore/cluster/cluster_member.h"
#include "kvstore/config/daemon_config.h"
#include "kvstore/daemon/node_transport.h"
#include "kvstore/node/embedded/embedded_node.h"

namespace cairn::kv {

// Give it to EmbeddedNode::Start.
class EtcdCluster final : public EmbeddedCluster {
 public:
  // `log` must outlive it. The configuration has been checked. `tls`: between the nodes; null:
  // nothing is encrypted.
  EtcdCluster(const DaemonConfig& config, std::shared_ptr<const TlsContext> tls, Log& log);
  ~EtcdCluster() override;

  // kInvalid: as of MakeTransport.
  Result<Surroundings*> Open(const Parts& parts) override;
  void Close() override;

  // On the store's thread, between Open and Close.
  ClusterView view() const;
  TransportStats transport_stats() const;
  ClusterAdmin& admin();

 private:
  struct Core;

  const DaemonConfig config_;
  const std::shared_ptr<const TlsContext> tls_;
  Log& log_;
  std::unique_ptr<Core> core_;
};

}  // namespace cairn::kv
