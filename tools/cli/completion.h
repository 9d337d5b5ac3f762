// Completion scripts for shells from a tree of commands.
#pragma once

#include <string>

#include "kvstore/base/result.h"
#include "tools/cli/command_tree.h"

namespace cairn::tools {

// `shell` is "bash", "zsh" or "fish"; kInvalid otherwise. The script completes commands, flags and
// the choices of flags; everything else as file names.
kv::Result<std::string> CompletionScript(const CommandInfo& command, const std::string& shell);

}  // namespace cairn::tools
