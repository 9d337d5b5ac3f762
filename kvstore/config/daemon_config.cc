// Defaults that the options structs of the store leave open.
#include "kvstore/config/daemon_config.h"

namespace cairn::kv {

DaemonConfig::DaemonConfig() { node.data_dir = kDataDirDefault; }

std::string DaemonConfig::SocketPath() const {
  return listen.unix_socket == "auto" ? SocketPathOf(node.data_dir) : listen.unix_socket;
}

std::string SocketPathOf(const std::string& data_dir) { return data_dir + "/cairn.sock"; }

}  // namespace cairn::kv
