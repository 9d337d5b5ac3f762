// Configuration as TOML text: read with every mistake told, and written as a commented example.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kvstore/base/result.h"
#include "kvstore/config/daemon_config.h"

namespace cairn::kv {

// Sets in `config` what `text` says; keys that it does not name stay. kInvalid: the message has one
// line for each mistake, "NAME:LINE: key: what is wrong and what to do"; `config` is then
// unspecified. Unknown keys and sections are mistakes. `name` is for these messages.
Status ApplyToml(std::string_view text, const std::string& name, DaemonConfig& config);

// The same of a file. kNotFound, kInvalid: it cannot be read; the message names it.
Status ApplyFile(const std::string& path, DaemonConfig& config);

// Every key with its help, range and value in `config`: a whole file that reads back as `config`.
std::string ToToml(const DaemonConfig& config);

}  // namespace cairn::kv
