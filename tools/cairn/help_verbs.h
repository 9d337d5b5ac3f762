// What the command line says about itself: completions and manual pages.
#pragma once

#include <string>

#include "tools/cairn/verb.h"

namespace cairn::tools {

// For the end of --help.
std::string ExitCodeHelp();

// `completion SHELL` and `man PAGE`. Added last: they describe what was added before.
void AddHelpVerbs(CLI::App& app, Invocation& invocation);

}  // namespace cairn::tools
