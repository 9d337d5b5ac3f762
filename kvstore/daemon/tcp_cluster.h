// The cluster of one `cairnd`: etcd beneath, TCP between the nodes.
#pragma once

#include <memory>

#include "kvstore/cluster/cluster_member.h"
#include "kvstore/config/daemon_config.h"
#include "kvstore/node/embedded/embedded_node.h"

namespace cairn::kv {

// Give it to EmbeddedNode::Start.
class TcpCluster final : public EmbeddedCluster {
 public:
  // `log` must outlive it. The configuration has been checked.
  TcpCluster(const DaemonConfig& config, Log& log);
  ~TcpCluster() override;

  // kInvalid: the secret cannot be read, or the addresses cannot be used.
  Result<Surroundings*> Open(const Parts& parts) override;
  void Close() override;

  // On the store's thread, between Open and Close.
  ClusterView view() const;
  ClusterAdmin& admin();

 private:
  class Links;
  struct Core;

  const DaemonConfig config_;
  Log& log_;
  std::unique_ptr<Core> core_;
};

}  // namespace cairn::kv
