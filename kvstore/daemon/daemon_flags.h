// The flags of `cairnd`: one for each setting of the configuration, and a few of its own.
#pragma once

#include <map>
#include <string>

#include "kvstore/base/result.h"
#include "kvstore/config/daemon_config.h"

namespace CLI {
class App;
}

namespace cairn::kv {

inline constexpr const char* kConfigFileDefault = "/etc/cairn/cairnd.toml";

struct DaemonFlags {
  std::string config_file = {};  // Empty: kConfigFileDefault, if there is one.
  std::string check_config = {};
  bool print_config = false;
  std::map<std::string, std::string> settings = {};  // Key of the field to its text.
};

// "--data-dir" for store.data_dir, "--log-level" for log.level.
std::string FlagOf(std::string_view key);

void AddDaemonFlags(CLI::App& app, DaemonFlags& flags);

// Defaults, then the file, then CAIRN_POLLER, then the flags; not yet checked for relations.
// kInvalid: every mistake, one a line.
Result<DaemonConfig> LoadConfig(const DaemonFlags& flags);

// The first line of the file. kInvalid, beginning with `key`: there is none to be read.
Result<std::string> FirstLineOf(const std::string& key, const std::string& path);

// The server's options with what is in listen.admin_token_file. kInvalid: it cannot be read.
Result<ServerOptions> WithSecrets(const DaemonConfig& config);

}  // namespace cairn::kv
