// What an RdmaNetwork is told, and what it counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvstore/io/network_stats.h"
#include "kvstore/os/hello_complaints.h"
#include "kvstore/os/peer_calls.h"
#include "kvstore/os/tcp_hello.h"

namespace cairn::kv {

struct RdmaNetworkOptions {
  NodeId self;
  // One address of each port to use: "10.0.0.1:7400", port 0 for any. Calls leave from them in
  // turn. Empty: a node that only calls, from where the kernel's routes say.
  std::vector<std::string> addresses = {};
  // Nodes of clusters with other names refuse each other.
  std::string cluster = {};
  // Shared by all nodes of the cluster; at least 16 bytes: no RDMA address is a loopback.
  std::string secret = {};
  VersionRange versions = {};
  // To each peer, for calls with payload; those without share one more.
  uint32_t data_connections = 2;
  // Of payloads on their way to and from one peer, and all: beyond it calls are kOverloaded, and
  // payloads of peers are read later.
  uint64_t peer_bytes_max = 256 * kMiB;
  uint64_t bytes_max = 1 * kGiB;
  // Of regions (rdma_memory.h) that stay registered with a device while nothing uses them.
  uint64_t cached_bytes_max = 64 * kGiB;
  uint64_t bounce_bytes = 16 * kMiB;  // Of each device, for what is sooner copied than registered.
  Nanos connect_timeout = Seconds(1);  // With the hello.
  Nanos reconnect_after = Seconds(1);  // Of an attempt that failed.
  Nanos silence_max = Seconds(2);      // Then a connection asks whether its peer's port is alive.
  // Of a packet: 4.096 us * 2^n until it is sent again, and how often. 7 would mean for ever.
  uint8_t ack_timeout = 14;
  uint8_t retry_count = 6;
  uint8_t not_ready_retry_count = 6;
};

struct RdmaNetworkStats : NetworkStats, RdmaDeviceStats {
  uint64_t calls_cancelled = 0;  // Late ones whose memory the peer had to give back first.
};

}  // namespace cairn::kv
