// The commands and options of a program as plain data, read from its CLI11 parser.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cairn::tools {

struct OptionInfo {
  std::vector<std::string> flags;  // "-o", "--output"; empty for a positional argument.
  std::string name;                // Of a positional: "FILE".
  std::string value;               // What follows a flag: "BYTES"; empty when nothing does.
  std::string help;
  std::string default_value;  // Empty: none.
  std::vector<std::string> choices;
  bool required = false;
  bool many = false;
};

struct CommandInfo {
  std::string name;  // "create"
  std::string path;  // "cairn namespace create"
  std::string help;
  std::vector<OptionInfo> options;
  std::vector<CommandInfo> commands;
};

// Hidden options and commands (those of an empty group) are left out.
CommandInfo DescribeCommand(const CLI::App& app);

// "cairn put [OPTIONS] NAMESPACE KEY [FILE]"
std::string Synopsis(const CommandInfo& command);

}  // namespace cairn::tools
