// What a TcpNetwork is told, what it counts, and what its two halves share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kvstore/base/log.h"
#include "kvstore/io/clock.h"
#include "kvstore/io/network.h"
#include "kvstore/io/network_stats.h"
#include "kvstore/os/hello_complaints.h"
#include "kvstore/os/peer_calls.h"
#include "kvstore/os/poller.h"
#include "kvstore/os/request_admission.h"
#include "kvstore/os/tcp_connection.h"

namespace cairn::kv {

struct TcpNetworkOptions {
  NodeId self;
  // "127.0.0.1:0" and the like; empty for a node that only calls.
  std::string listen;
  // Nodes of clusters with other names refuse each other.
  std::string cluster = {};
  // Shared by all nodes of the cluster. Empty: only addresses of the loopback are used.
  std::string secret = {};
  // Null: what nodes tell each other is not encrypted. Else both sides of a connection show
  // certificates that the context's authority has signed.
  std::shared_ptr<const TlsContext> tls = nullptr;
  VersionRange versions = {};
  // To each peer, for calls with payload; those without share one more.
  uint32_t data_connections = 2;
  // Of payloads on their way to and from one peer, and all: beyond it calls are kOverloaded, and
  // requests of peers are read later.
  uint64_t peer_bytes_max = 256 * kMiB;
  uint64_t bytes_max = 1 * kGiB;
  Nanos connect_timeout = Seconds(1);  // With the hello.
  Nanos reconnect_after = Seconds(1);  // Of an attempt that failed.
  Nanos stall_timeout = Seconds(10);   // In the middle of a frame.
};

struct TcpNetworkStats : NetworkStats {
  uint64_t landings_diverted = 0;  // Answers that came too late and were thrown away.
};

inline constexpr uint64_t kTcpConnectionsMax = 4096;

// References of one network's own; all outlive the two halves.
struct TcpParts {
  Poller& poller;
  Clock& clock;
  Log& log;
  const TcpNetworkOptions& options;
  const NodeIdentity& identity;
  TcpNetworkStats& stats;
};

}  // namespace cairn::kv
