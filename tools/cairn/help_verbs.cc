// Completions and manual pages, made from the parser's own table of options.
#include "tools/cairn/help_verbs.h"

#include <CLI/CLI.hpp>

#include "kvstore/config/version.h"
#include "kvstore/daemon/daemon_flags.h"
#include "tools/cli/command_tree.h"
#include "tools/cli/completion.h"
#include "tools/cli/man_page.h"
#include "tools/planner/commands.h"
#include "tools/replay/replay_command.h"

namespace cairn::tools {
namespace {

struct ExitCode {
  int code;
  const char* meaning;
};

constexpr ExitCode kExitCodes[] = {
    {kExitDone, "done"},
    {kExitFailed, "failed: the store said no, or cannot be reached; the reason is printed"},
    {kExitUsage, "wrong usage or input; the message says what to do"},
    {kExitNotThere, "not there: the block is a miss, or there is no such namespace or node"},
    {kExitUnhealthy, "status --check, cluster --check: something needs a person"},
    {kExitClosed, "who read the output has gone"},
};

// The commands that parse for themselves, in place of their names.
CommandInfo Tree(const CLI::App& app) {
  CommandInfo tree = DescribeCommand(app);
  const auto replace = [&tree](const char* name, auto command) {
    for (CommandInfo& inner : tree.commands) {
      if (inner.name != name) continue;
      const std::vector<std::string> none;
      command(none, AppVisitor([&inner, name](const CLI::App& parser) {
                CommandInfo described = DescribeCommand(parser);
                described.name = name;
                inner = std::move(described);
              }));
    }
  };
  replace("plan", PlanCommand);
  replace("trace", TraceCommand);
  replace("replay", ReplayCommand);
  return tree;
}

ManPage CairnPage() {
  ManPage page;
  page.section = 1;
  page.version = kv::kVersion;
  page.summary = "store KV cache blocks on erasure-coded SSDs, and look after them";
  page.description = {
      "cairn speaks with a running store, cairnd(8) or 'cairn up', over its unix socket or TCP. It "
      "also plans stores, studies traces, and runs store, engine and gateway in one process.",
      "Text for people goes to standard output; with --json it is JSON. Progress is shown on a "
      "terminal only. Sizes and times are numbers with units: 64 MiB, 3 d."};
  ManSection exits{.title = "EXIT STATUS", .paragraphs = {}};
  for (const ExitCode& exit : kExitCodes) {
    exits.paragraphs.push_back("* " + std::to_string(exit.code) + ": " + exit.meaning + ".");
  }
  page.more = {
      exits,
      {.title = "ENVIRONMENT",
       .paragraphs = {"* CAIRN_CONNECT: where the store is, when --connect is not given.",
                      "* CAIRN_POLLER: io_uring, epoll or auto, for up and replay."}},
      {.title = "FILES",
       .paragraphs = {std::string("* ").append(kv::kDataDirDefault).append(
           "/cairn.sock: the socket of a store that was not told otherwise.")}},
      {.title = "EXAMPLES",
       .paragraphs = {"  cairn namespace create demo --fingerprint text --run-blocks 1\n"
                      "echo hello | cairn put demo greeting\n"
                      "cairn get demo greeting\n"
                      "cairn inspect demo greeting --verify\n"
                      "cairn status --check && echo healthy\n"
                      "source <(cairn completion bash)"}},
      {.title = "SEE ALSO", .paragraphs = {"cairnd(8), docs/guides/store.md"}}};
  return page;
}

ManPage DaemonPage() {
  ManPage page;
  page.section = 8;
  page.version = kv::kVersion;
  page.summary = "serve an erasure-coded block store from files or SSDs";
  page.description = {
      "cairnd opens the targets in its data folder, or makes them, and serves clients on a unix "
      "socket, with shared memory, and over TCP. Settings come from the defaults, then the "
      "configuration file, then flags.",
      "When it serves it prints one line, 'ready', with its addresses, and tells the service "
      "manager (NOTIFY_SOCKET)."};
  page.more = {
      {.title = "SIGNALS",
       .paragraphs = {"* SIGTERM, SIGINT: stop cleanly: calls in flight are finished. A second one "
                      "ends it at once, which loses no acknowledged durable put.",
                      "* SIGHUP: read log.level from the configuration file again, and "
                      "certificates in files that have changed."}},
      {.title = "EXIT STATUS",
       .paragraphs = {"* 0: stopped cleanly, or the configuration is sound.",
                      "* 1: failed; the reason is printed.",
                      "* 2: wrong usage or configuration; each mistake is printed."}},
      {.title = "ENVIRONMENT",
       .paragraphs = {"* CAIRN_POLLER: io.engine, when neither file nor flag say it.",
                      "* NOTIFY_SOCKET: where systemd wants to hear READY=1."}},
      {.title = "FILES",
       .paragraphs = {"* /etc/cairn/cairnd.toml: read when it exists and --config is not given.",
                      "* deploy/cairnd.toml: every setting with its default, explained."}},
      {.title = "SEE ALSO", .paragraphs = {"cairn(1), docs/guides/store.md"}}};
  return page;
}

kv::Status PrintPage(const CLI::App& app, Invocation& invocation, const std::string& name) {
  if (name == "cairn") {
    invocation.console.Write(ToMan(Tree(app), CairnPage()));
    return kv::Status();
  }
  CLI::App daemon("Serves a block store.", "cairnd");
  kv::DaemonFlags flags;
  AddDaemonFlags(daemon, flags);
  invocation.console.Write(ToMan(DescribeCommand(daemon), DaemonPage()));
  return kv::Status();
}

}  // namespace

std::string ExitCodeHelp() {
  std::string text = "Exit codes:";
  for (const ExitCode& exit : kExitCodes) {
    text += "\n  " + std::to_string(exit.code) + "  " + exit.meaning;
  }
  return text;
}

void AddHelpVerbs(CLI::App& app, Invocation& invocation) {
  auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand("completion", "print a completion script for a shell");
  completion->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  OnVerb(*completion, invocation, [&app, &invocation, shell]() -> kv::Status {
    KV_ASSIGN_OR_RETURN(const std::string script, CompletionScript(Tree(app), *shell));
    invocation.console.Write(script);
    return kv::Status();
  });

  auto page = std::make_shared<std::string>("cairn");
  CLI::App* man = app.add_subcommand("man", "print a manual page (troff): cairn man | man -l -");
  man->add_option("PAGE", *page, "cairn or cairnd")->check(CLI::IsMember({"cairn", "cairnd"}));
  OnVerb(*man, invocation,
         [&app, &invocation, page] { return PrintPage(app, invocation, *page); });
}

}  // namespace cairn::tools
