// Chooses, and reads the secret that all transports need.
#include "kvstore/daemon/node_transport.h"

#include "kvstore/daemon/daemon_flags.h"

namespace cairn::kv {

Result<std::unique_ptr<NodeTransport>> MakeTransport(const DaemonConfig& config,
                                                     const TransportParts& parts) {
  const ClusterConfig& cluster = config.cluster;
  std::string secret;
  if (!cluster.secret_file.empty()) {
    KV_ASSIGN_OR_RETURN(secret, FirstLineOf("cluster.secret_file", cluster.secret_file));
  }
  return cluster.transport == ClusterTransport::kTcp
             ? MakeTcpTransport(config, std::move(secret), parts)
             : MakeRdmaTransport(config, std::move(secret), parts);
}

}  // namespace cairn::kv
