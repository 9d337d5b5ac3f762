// `cairn plan` and `cairn trace`, for whichever program offers them.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cairn::tools {

// What a command wrote and how it ended: 0 done, 1 failed or found something wrong, 2 wrong usage.
struct CommandResult {
  int exit_code = 0;
  std::string output;
  std::string errors;
};

// Sees a command's parser instead of running the command: for manuals and completions.
using AppVisitor = std::function<void(const CLI::App&)>;

// `arguments` are those after the command's name: {"docs/scenarios/deepseek-v41.toml", "--json"}.
CommandResult PlanCommand(const std::vector<std::string>& arguments,
                          const AppVisitor& visit = {});
CommandResult TraceCommand(const std::vector<std::string>& arguments,
                           const AppVisitor& visit = {});

// The same as whole programs: argv[0] is skipped, texts go to standard output and error.
int RunPlan(int argc, char** argv);
int RunTrace(int argc, char** argv);

}  // namespace cairn::tools
