// Catches what CLI11 throws, so that nothing else has to know of exceptions.
#include "tools/planner/command_support.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <sstream>

namespace cairn::tools {
namespace {

int RunAsProgram(CommandResult (*command)(const std::vector<std::string>&, const AppVisitor&),
                 int argc, char** argv) {
  const CommandResult result =
      command(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc), {});
  std::fwrite(result.output.data(), 1, result.output.size(), stdout);
  std::fwrite(result.errors.data(), 1, result.errors.size(), stderr);
  return result.exit_code;
}

}  // namespace

CommandResult RunParsed(CLI::App& app, const std::vector<std::string>& arguments,
                        const AppVisitor& visit,
                        const std::function<kv::Status(CommandResult&)>& body) {
  CommandResult result;
  if (visit) {
    visit(app);
    return result;
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    std::ostringstream output, errors;
    result.exit_code = app.exit(error, output, errors) == 0 ? 0 : 2;
    result.output = output.str();
    result.errors = errors.str();
    return result;
  }
  const kv::Status status = body(result);
  if (!status.ok()) {
    result.errors += status.message() + "\n";
    if (result.exit_code == 0) result.exit_code = 1;
  }
  return result;
}

kv::Status WriteTextFile(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return {kv::Code::kInvalid, "cannot write " + path};
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written)
    return {kv::Code::kNoSpace, "cannot finish writing " + path};
  return kv::Status();
}

int RunPlan(int argc, char** argv) { return RunAsProgram(PlanCommand, argc, argv); }
int RunTrace(int argc, char** argv) { return RunAsProgram(TraceCommand, argc, argv); }

}  // namespace cairn::tools
