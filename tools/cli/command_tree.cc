// Walks the parser's own lists; nothing is said twice.
#include "tools/cli/command_tree.h"

#include <CLI/CLI.hpp>

namespace cairn::tools {
namespace {

// Choices stand in CLI11's type name as "TEXT:{a,b}" or alone as "{a,b}".
void SplitTypeName(const std::string& type, OptionInfo& info) {
  const size_t open = type.find('{');
  const size_t close = type.rfind('}');
  info.value = type.substr(0, type.find(':'));
  if (open == std::string::npos || close == std::string::npos || close < open) return;
  std::string choice;
  for (size_t i = open + 1; i <= close; ++i) {
    if (type[i] == ',' || i == close) {
      info.choices.push_back(choice.substr(0, choice.find("->")));
      choice.clear();
    } else {
      choice.push_back(type[i]);
    }
  }
  if (open == 0) info.value = "WORD";
}

OptionInfo DescribeOption(const CLI::Option& option) {
  OptionInfo info;
  for (const std::string& name : option.get_snames()) info.flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) info.flags.push_back("--" + name);
  if (option.get_positional()) {
    info.flags.clear();
    info.name = option.get_name(true);
  }
  if (option.get_items_expected_max() > 0) SplitTypeName(option.get_type_name(), info);
  info.help = option.get_description();
  info.default_value = option.get_default_str();
  info.required = option.get_required();
  info.many = option.get_items_expected_max() > 1;
  return info;
}

CommandInfo Describe(const CLI::App& app, const std::string& path) {
  CommandInfo command;
  command.name = app.get_name();
  command.path = path;
  command.help = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) command.options.push_back(DescribeOption(*option));
  }
  for (const CLI::App* inner : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (inner->get_group().empty()) continue;
    command.commands.push_back(Describe(*inner, path + " " + inner->get_name()));
  }
  return command;
}

}  // namespace

CommandInfo DescribeCommand(const CLI::App& app) { return Describe(app, app.get_name()); }

std::string Synopsis(const CommandInfo& command) {
  std::string text = command.path;
  bool has_flags = false;
  for (const OptionInfo& option : command.options) has_flags |= !option.flags.empty();
  if (has_flags) text += " [OPTIONS]";
  for (const OptionInfo& option : command.options) {
    if (!option.flags.empty()) continue;
    const std::string name = option.many ? option.name + "..." : option.name;
    text += option.required ? " " + name : " [" + name + "]";
  }
  if (!command.commands.empty()) text += " COMMAND";
  return text;
}

}  // namespace cairn::tools
