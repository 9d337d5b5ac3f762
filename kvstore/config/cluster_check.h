// Relations of a cluster's settings, with each other and with those of clients.
#pragma once

#include <string>
#include <vector>

#include "kvstore/config/daemon_config.h"

namespace cairn::kv {

// Adds one line for each relation that does not hold. Nothing is checked while the cluster is not
// enabled.
void CheckCluster(const DaemonConfig& config, std::vector<std::string>& lines);

// Adds what works, but is seldom meant.
void WarnOfCluster(const ClusterConfig& cluster, std::vector<std::string>& lines);

}  // namespace cairn::kv
