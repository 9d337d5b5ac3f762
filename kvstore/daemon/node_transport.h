// What carries calls between the nodes: TCP or RDMA.
#pragma once

#include <memory>

#include "kvstore/base/log.h"
#include "kvstore/cluster/node_links.h"
#include "kvstore/config/daemon_config.h"
#include "kvstore/io/network_stats.h"
#include "kvstore/os/poller.h"
#include "kvstore/os/tls.h"

namespace cairn::kv {

// Loop thread only.
class NodeTransport : public NodeLinks {
 public:
  // Nothing before Open.
  virtual TransportStats stats() const = 0;
};

// Of the node itself; all must outlive its transport.
struct TransportParts {
  Poller& poller;
  Clock& clock;
  Log& log;
  std::shared_ptr<const TlsContext> tls;  // Null: nothing is encrypted.
};

// By cluster.transport. kInvalid: the secret cannot be read.
Result<std::unique_ptr<NodeTransport>> MakeTransport(const DaemonConfig& config,
                                                     const TransportParts& parts);

// --- For MakeTransport ---
Result<std::unique_ptr<NodeTransport>> MakeTcpTransport(const DaemonConfig& config,
                                                        std::string secret,
                                                        const TransportParts& parts);
Result<std::unique_ptr<NodeTransport>> MakeRdmaTransport(const DaemonConfig& config,
                                                         std::string secret,
                                                         const TransportParts& parts);

}  // namespace cairn::kv
