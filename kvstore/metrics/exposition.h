// One moment of a store as Prometheus text (exposition format 0.0.4).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kvstore/client/store_admin.h"
#include "kvstore/client/store_stats.h"
#include "kvstore/control/cluster_view.h"
#include "kvstore/io/network_stats.h"
#include "kvstore/metrics/metered_store.h"
#include "kvstore/serve/server.h"

namespace cairn::kv {

// What is not known is left out of the text.
struct MetricsSnapshot {
  StoreStats store;
  std::vector<TargetInfo> targets = {};
  std::vector<SpaceInfo> spaces = {};
  std::optional<MaintenanceStatus> scrub = {};
  std::optional<MaintenanceStatus> repair = {};
  std::optional<ServerStats> server = {};
  std::optional<MeteredStats> calls = {};
  struct Endurance {
    double bytes_per_day = 0;  // Over the last day.
    double rated_drive_writes_per_day = 0;
  };
  std::optional<Endurance> endurance = {};
  struct Process {
    std::string version;
    std::string poller;  // "io_uring"
    double start_unix_seconds = 0;
  };
  std::optional<Process> process = {};
  std::optional<ClusterView> cluster = {};
  std::optional<TransportStats> transport = {};  // Between the nodes.
  struct CertificateEnd {
    std::string use;  // "clients"
    UnixMillis ends_at;
  };
  std::vector<CertificateEnd> certificate_ends = {};
};

// Bytes written for each byte put, moves included; 1 before anything was put.
double WriteAmplification(const StoreStats& stats);

std::string MetricsText(const MetricsSnapshot& snapshot);

}  // namespace cairn::kv
