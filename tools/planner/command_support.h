// What the commands share: parsing, writing files, and turning a Status into an exit code.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kvstore/base/status.h"
#include "tools/planner/commands.h"

namespace CLI {
class App;
}

namespace cairn::tools {

// Parses, then runs `body`. Usage errors give 2, a bad Status gives 1, and --help gives 0. With
// `visit` only that is called, with `app`.
CommandResult RunParsed(CLI::App& app, const std::vector<std::string>& arguments,
                        const AppVisitor& visit,
                        const std::function<kv::Status(CommandResult&)>& body);

kv::Status WriteTextFile(const std::string& path, const std::string& text);

}  // namespace cairn::tools
