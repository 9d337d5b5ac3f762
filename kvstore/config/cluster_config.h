// What a node is told of the cluster that it is part of (docs/decisions/0011-cluster.md).
#pragma once

#include <cstdint>
#include <string>

#include "kvstore/base/time.h"
#include "kvstore/base/units.h"
#include "kvstore/io/tls_files.h"

namespace cairn::kv {

enum class ClusterTransport : uint8_t { kTcp, kRdma };

struct ClusterConfig {
  bool enabled = false;
  std::string name = "cairn";
  std::string node = "";
  std::string rack = "";       // Empty: the node is a failure domain of its own.
  ClusterTransport transport = ClusterTransport::kTcp;
  std::string listen = "127.0.0.1:7412";  // Over RDMA several with commas, one of each port.
  std::string advertise = "";  // "10.0.0.1:7412, 10.1.0.1:7412". Empty: `listen`.
  std::string etcd = "http://127.0.0.1:2379";  // Several with commas.
  TlsFiles etcd_tls = {};
  std::string secret_file = "";
  TlsFiles tls = {};  // All three, or none: what nodes tell each other is not encrypted.
  uint32_t group_bits = 8;     // 2^group_bits index groups; fixed when the cluster is made.
  Nanos lease = Seconds(5);
  Nanos suspect_after = Seconds(5);
  Nanos lost_after = Seconds(600);
  Nanos slow_after = Seconds(15);
  uint64_t rebuild_bytes_per_second = 256 * kMiB;
  uint32_t protocol_max = 0;
  uint32_t data_connections = 4;
};

}  // namespace cairn::kv
