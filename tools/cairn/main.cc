// The command line: the table of verbs, and the one that was asked for.
#include <signal.h>

#include <CLI/CLI.hpp>

#include "kvstore/config/version.h"
#include "tools/cairn/help_verbs.h"
#include "tools/cairn/store_verbs.h"
#include "tools/cairn/up_verb.h"
#include "tools/planner/commands.h"
#include "tools/replay/replay_command.h"

namespace cairn::tools {
namespace {

void AddVerbs(CLI::App& app, Invocation& invocation) {
  AddStatusVerb(app, invocation);
  AddNamespaceVerbs(app, invocation);
  AddPutVerb(app, invocation);
  AddGetVerb(app, invocation);
  AddListVerb(app, invocation);
  AddInspectVerb(app, invocation);
  AddDeleteVerb(app, invocation);
  AddTargetsVerb(app, invocation);
  AddScrubVerbs(app, invocation);
  AddRepairVerbs(app, invocation);
  AddClusterVerb(app, invocation);
  AddDrainVerb(app, invocation);
  AddMetricsVerb(app, invocation);
  AddBenchVerb(app, invocation);
  // These three read their own arguments, help included; here they are only named.
  app.add_subcommand("replay", "drive a store with a trace: cairn replay --help");
  app.add_subcommand("plan", "how many SSDs, for how long, at what price: cairn plan --help");
  app.add_subcommand("trace", "hit rates and tools for request traces: cairn trace --help");
  AddUpVerb(app, invocation);
  AddModelVerbs(app, invocation);
  AddHelpVerbs(app, invocation);
}

int Main(int argc, char** argv) {
  // A reader that goes away is seen by the write that fails.
  signal(SIGPIPE, SIG_IGN);
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "plan") return RunPlan(argc - 1, argv + 1);
  if (verb == "trace") return RunTrace(argc - 1, argv + 1);
  if (verb == "replay") return RunReplay(argc - 1, argv + 1);

  CLI::App app{"Cairn: an erasure-coded SSD block store for KV cache, its engine and gateway",
               "cairn"};
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("cairn ").append(kv::kVersion));
  app.footer(ExitCodeHelp());
  Invocation invocation;
  AddVerbs(app, invocation);
  const auto named = [&verb](const CLI::App* inner) { return inner->get_name() == verb; };
  if (!verb.empty() && verb[0] != '-' && app.get_subcommands(named).empty()) {
    return Report(kv::Status(kv::Code::kInvalid,
                             "there is no verb '" + verb + "'; cairn --help lists them"));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitDone : kExitUsage;
  }
  return invocation.run();
}

}  // namespace
}  // namespace cairn::tools

int main(int argc, char** argv) { return cairn::tools::Main(argc, argv); }
