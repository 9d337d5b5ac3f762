// What a network between nodes counts.
#pragma once

#include <cstdint>
#include <optional>

namespace cairn::kv {

// Over any transport.
struct NetworkStats {
  uint64_t connections = 0;  // Open now, either way.
  uint64_t connections_made = 0;
  uint64_t malformed_frames = 0;  // Each has cost its sender the connection.
  uint64_t hellos_refused = 0;    // Another cluster, node or version.
  uint64_t hellos_unproven = 0;   // Without the secret.
  uint64_t calls = 0;
  uint64_t calls_overloaded = 0;
  uint64_t calls_late = 0;
  uint64_t connections_cut = 0;  // To take back memory of a call, or of peers that stalled.
  uint64_t requests = 0;
};

// What RDMA devices were asked for.
struct RdmaDeviceStats {
  uint64_t sends = 0;
  uint64_t writes = 0;
  uint64_t reads = 0;
  uint64_t bytes_transferred = 0;  // Of writes and reads.
  uint64_t bytes_copied = 0;       // Of bodies, and of payload through bounce buffers.
  uint64_t registrations = 0;      // Of memory, for one call or cached.
  uint64_t cached_bytes = 0;       // Of regions registered now.
};

// Of one network: the second part only over RDMA.
struct TransportStats {
  NetworkStats network;
  std::optional<RdmaDeviceStats> devices = {};
};

// visit(name, is_gauge, value, help) for each number, in a fixed order.
template <typename Visit>
void VisitNetworkStats(const NetworkStats& stats, Visit&& visit) {
  visit("connections", true, stats.connections, "Connections between nodes open now, either way.");
  visit("connections_made", false, stats.connections_made, "Connections made to other nodes.");
  visit("malformed_frames", false, stats.malformed_frames, "Frames that ended their connection.");
  visit("hellos_refused", false, stats.hellos_refused,
        "Connections refused: of another cluster, node or version.");
  visit("hellos_unproven", false, stats.hellos_unproven,
        "Connections refused: without the cluster's secret, or its certificates.");
  visit("calls", false, stats.calls, "Calls to other nodes.");
  visit("calls_overloaded", false, stats.calls_overloaded,
        "Of which refused here: too much was on its way.");
  visit("calls_late", false, stats.calls_late, "Of which past their deadline.");
  visit("connections_cut", false, stats.connections_cut,
        "Connections closed to take back memory of a late call, or as their peer stalled.");
  visit("requests", false, stats.requests, "Calls of other nodes.");
}

template <typename Visit>
void VisitDeviceStats(const RdmaDeviceStats& stats, Visit&& visit) {
  visit("sends", false, stats.sends, "Messages that RDMA devices sent.");
  visit("writes", false, stats.writes, "Transfers that they wrote into memory of other nodes.");
  visit("reads", false, stats.reads, "Transfers that they read from it.");
  visit("bytes_transferred", false, stats.bytes_transferred, "Bytes of these transfers.");
  visit("bytes_copied", false, stats.bytes_copied,
        "Bytes of messages and small payloads, which the processor copied.");
  visit("registrations", false, stats.registrations,
        "Times that memory was made known to a device.");
  visit("cached_bytes", true, stats.cached_bytes, "Bytes of memory that stay known to one now.");
}

}  // namespace cairn::kv
