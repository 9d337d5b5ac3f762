// Relations of a cluster's settings, with each other and with those of clients.
#pragma once

#include <string>
#include <vector>

#include "kvstore/config/daemon_config.h"

namespace cairn::kv {

struct NamedFile {
  std::string setting;
  std::string path;  // Empty: not set.
};
// Adds a line when one of the two is set without the other.
void CheckKeyGoesWithCertificate(const NamedFile& certificate, const NamedFile& key,
                                 std::vector<std::string>& lines);

// Adds one line for each relation that does not hold. Nothing is checked while the cluster is not
// enabled.
void CheckCluster(const DaemonConfig& config, std::vector<std::string>& lines);

// Adds what works, but is seldom meant.
void WarnOfCluster(const ClusterConfig& cluster, std::vector<std::string>& lines);

}  // namespace cairn::kv
