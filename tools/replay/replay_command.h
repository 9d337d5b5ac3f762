// `cairn replay`, for whichever program offers it.
#pragma once

#include <string>
#include <vector>

#include "tools/planner/commands.h"

namespace cairn::tools {

// `arguments` are those after the command's name. Progress goes to standard error meanwhile.
CommandResult ReplayCommand(const std::vector<std::string>& arguments,
                            const AppVisitor& visit = {});

// The same as a whole program: argv[0] is skipped.
int RunReplay(int argc, char** argv);

}  // namespace cairn::tools
