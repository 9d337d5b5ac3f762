// A flag's text goes through the same field as a line of the file.
#include "kvstore/daemon/daemon_flags.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "kvstore/config/config_fields.h"
#include "kvstore/config/config_file.h"
#include "kvstore/config/version.h"

namespace cairn::kv {
namespace {

std::string TypeName(const ConfigField& field) {
  switch (field.kind) {
    case FieldKind::kText: return "TEXT";
    case FieldKind::kChoice: return "WORD";
    case FieldKind::kFlag: return "true|false";
    case FieldKind::kCount: return "COUNT";
    case FieldKind::kReal: return "NUMBER";
    case FieldKind::kBytes: return "BYTES";
    case FieldKind::kDuration: return "TIME";
  }
  return "TEXT";
}

Status SetField(std::string_view key, const std::string& said, const std::string& text,
                DaemonConfig& config) {
  const ConfigField* field = FindField(key);
  const Status status = field->set(config, text);
  return status.ok() ? status : Status(status.code(), said + ": " + status.message());
}

}  // namespace

std::string FlagOf(std::string_view key) {
  std::string flag(key.starts_with("store.") ? key.substr(6) : key);
  std::replace_if(
      flag.begin(), flag.end(), [](char c) { return c == '.' || c == '_'; }, '-');
  return std::string("--").append(flag);
}

void AddDaemonFlags(CLI::App& app, DaemonFlags& flags) {
  app.set_version_flag("--version", std::string("cairnd ").append(kVersion));
  app.add_option("--config", flags.config_file,
                 std::string("the configuration (default: ")
                     .append(kConfigFileDefault)
                     .append(", if there is one)"))
      ->type_name("FILE");
  app.add_option("--check-config", flags.check_config,
                 "only say whether this configuration is sound, and end")
      ->type_name("FILE");
  app.add_flag("--print-config", flags.print_config,
               "only print every setting, as it would be used, and end");
  for (const ConfigField& field : ConfigFields()) {
    const std::string key(field.key);
    CLI::Option* option = app.add_option_function<std::string>(
        FlagOf(key), [&flags, key](const std::string& text) { flags.settings[key] = text; },
        std::string(field.help));
    option->type_name(TypeName(field));
    std::string value = field.get(DaemonConfig());
    if (!value.empty()) option->default_str(std::move(value));
    option->group("Settings (over those of the file)");
  }
}

Result<DaemonConfig> LoadConfig(const DaemonFlags& flags) {
  DaemonConfig config;
  const std::string& named = flags.check_config.empty() ? flags.config_file : flags.check_config;
  if (!named.empty()) {
    Status status = ApplyFile(named, config);
    if (!status.ok()) return Status(Code::kInvalid, status.message());
  } else if (::access(kConfigFileDefault, F_OK) == 0) {
    KV_RETURN_IF_ERROR(ApplyFile(kConfigFileDefault, config));
  }
  const char* poller = std::getenv("CAIRN_POLLER");
  if (poller != nullptr && config.node.poller.engine == PollerEngine::kAuto) {
    KV_RETURN_IF_ERROR(SetField("io.engine", "CAIRN_POLLER", poller, config));
  }
  for (const auto& [key, text] : flags.settings) {
    KV_RETURN_IF_ERROR(SetField(key, FlagOf(key), text, config));
  }
  return config;
}

Result<std::string> FirstLineOf(const std::string& key, const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (std::getline(file, line) && !line.empty()) return line;
  return Status(Code::kInvalid, key + ": " + path + " has no first line to be read");
}

Result<ServerOptions> WithSecrets(const DaemonConfig& config) {
  ServerOptions options = config.server;
  const std::string& path = config.listen.admin_token_file;
  if (path.empty()) return options;
  KV_ASSIGN_OR_RETURN(options.admin_token, FirstLineOf("listen.admin_token_file", path));
  return options;
}

}  // namespace cairn::kv
