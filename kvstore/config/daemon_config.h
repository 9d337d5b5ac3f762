// All that one `cairnd` process can be told: what every key of its configuration file sets.
#pragma once

#include <cstdint>
#include <string>

#include "kvstore/base/log.h"
#include "kvstore/config/cluster_config.h"
#include "kvstore/node/embedded/embedded_node.h"
#include "kvstore/serve/server.h"

namespace cairn::kv {

enum class LogFormat : uint8_t { kText, kJson };

struct ListenConfig {
  std::string unix_socket = "auto";  // "auto": DATA_DIR/cairn.sock. Empty: none.
  std::string tcp = "";              // "127.0.0.1:7411". Empty: none.
  bool tcp_beyond_loopback = false;  // A promise that the net is safe, or that TLS makes it so.
  TlsFiles tcp_tls = {};             // Without a certificate: not encrypted.
  // The file whose first line TCP clients must name to administer. Empty: none of them may.
  std::string admin_token_file = "";
  std::string metrics = "127.0.0.1:9511";  // /metrics, /healthz, /readyz. Empty: none.
  bool metrics_beyond_loopback = false;    // Nobody is asked who he is: the same promise.
};

struct LogConfig {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
};

struct DaemonConfig {
  EmbeddedOptions node;
  ServerOptions server;  // Its addresses and its token come from `listen`.
  ListenConfig listen;
  ClusterConfig cluster;
  LogConfig log;
  double drive_writes_per_day = 1.0;  // What the SSDs are rated for: the endurance metric's base.
  bool self_test = true;              // Put, get, verify and delete one block before serving.

  DaemonConfig();

  // Where the unix socket is: "auto" resolved. Empty: none.
  std::string SocketPath() const;
};

// Where `cairnd` keeps its data, and where `cairn` looks for its socket, when nothing else is said.
inline constexpr const char* kDataDirDefault = "/var/lib/cairn";
// What the system allows for the path of a unix socket.
inline constexpr size_t kSocketPathMax = 107;
std::string SocketPathOf(const std::string& data_dir);

}  // namespace cairn::kv
