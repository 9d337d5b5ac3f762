// `cairn cluster` and `cairn drain`: the whole cluster, seen and steered at any one node of it.
#include <CLI/CLI.hpp>

#include "tools/cairn/cluster_report.h"
#include "tools/cairn/session.h"
#include "tools/cairn/store_verbs.h"

namespace cairn::tools {
namespace {

using kv::Code;
using kv::Draining;
using kv::RemoteStore;
using kv::Result;
using kv::Status;

Result<ClusterOverview> Look(Session& session) {
  ClusterOverview seen;
  KV_ASSIGN_OR_RETURN(seen.cluster, session.Ask<Result<kv::ClusterInfo>>([](RemoteStore& store) {
    return store.DescribeCluster();
  }));
  KV_ASSIGN_OR_RETURN(seen.spaces, session.Ask<Result<std::vector<kv::SpaceInfo>>>(
                                       [](RemoteStore& store) { return store.ListSpaces(); }));
  return seen;
}

struct ClusterFlags {
  bool check = false;
  bool targets = false;
};

int ShowCluster(Invocation& invocation, const ClusterFlags& flags) {
  auto session = Session::Open(invocation.options);
  if (!session.ok()) return Report(session.status());
  const auto seen = Look(*session.value());
  if (!seen.ok()) return Report(seen.status());
  const std::string& address = session.value()->address();
  std::string text;
  if (invocation.console.json) {
    text = ToText(ClusterJson(seen.value(), address));
  } else {
    text = ClusterText(seen.value(), address);
    if (flags.targets) text += "\n" + ClusterTargetsText(seen.value().cluster);
  }
  if (!invocation.console.Write(text)) return kExitClosed;
  return flags.check && !ClusterConcerns(seen.value()).empty() ? kExitUnhealthy : kExitDone;
}

struct DrainFlags {
  std::string node;
  uint64_t target = 0;
  bool undo = false;
};

// What the map says in a second or two.
void Foresee(const DrainFlags& flags, kv::ClusterInfo& cluster) {
  for (kv::NodeEntry& node : cluster.nodes) {
    if (node.name == flags.node || std::to_string(node.id.value) == flags.node) {
      node.draining = true;
    }
  }
  for (kv::ClusterTargetInfo& target : cluster.targets) {
    if (flags.target != 0 && target.id.value == flags.target) target.draining = true;
  }
}

Status Ask(Session& session, const DrainFlags& flags) {
  const Draining wanted = flags.undo ? Draining::kNo : Draining::kYes;
  return session.Ask<Status>([&](RemoteStore& store) {
    return flags.target != 0 ? store.DrainTarget({flags.target}, wanted)
                             : store.DrainNode(flags.node, wanted);
  });
}

Status Drain(Invocation& invocation, const DrainFlags& flags) {
  if (flags.node.empty() == (flags.target == 0)) {
    return Status(Code::kInvalid, "name what is to be drained: either a NODE or --target ID");
  }
  KV_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(invocation.options));
  KV_RETURN_IF_ERROR(Ask(*session, flags));
  const bool of_target = flags.target != 0;
  const std::string what =
      of_target ? "target " + std::to_string(flags.target) : "'" + flags.node + "'";
  std::vector<std::string> stuck;
  if (!flags.undo) {
    // The wish is noted; what is only known better by looking is no error if it cannot be had.
    auto seen = Look(*session);
    if (seen.ok()) {
      Foresee(flags, seen.value().cluster);
      stuck = StuckDrains(seen.value());
    }
  }
  if (invocation.console.json) {
    Json json = {{"draining", !flags.undo}, {"concerns", stuck}};
    json[of_target ? "target" : "node"] = of_target ? Json(flags.target) : Json(flags.node);
    invocation.console.Write(ToText(json));
    return Status();
  }
  std::string text = what + (flags.undo ? " takes part again\n"
                                        : " is being emptied; 'cairn cluster' tells when it is "
                                          "drained\n");
  for (const std::string& concern : stuck) text += "but " + concern + "\n";
  invocation.console.Write(text);
  return Status();
}

}  // namespace

void AddClusterVerb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb =
      app.add_subcommand("cluster", "show the whole cluster that a store is part of");
  auto flags = std::make_shared<ClusterFlags>();
  verb->add_flag("--check", flags->check, "end with exit code 4 when something needs a person");
  verb->add_flag("--targets", flags->targets, "list every target, too; --json always does");
  AddVerbOptions(*verb, invocation);
  verb->callback([&invocation, flags] {
    invocation.run = [&invocation, flags] { return ShowCluster(invocation, *flags); };
  });
}

void AddDrainVerb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb = app.add_subcommand(
      "drain", "empty a node of the cluster, or one target, so that it can be taken away");
  auto flags = std::make_shared<DrainFlags>();
  verb->add_option("NODE", flags->node, "the node: its name, or its id")->type_name("");
  verb->add_option("--target", flags->target, "instead of a node: one target, by its id")
      ->check(CLI::Range(uint64_t{1}, UINT64_MAX))
      ->type_name("ID");
  verb->add_flag("--undo", flags->undo, "take it back: it takes part again");
  AddVerbOptions(*verb, invocation);
  OnVerb(*verb, invocation, flags, Drain);
}

}  // namespace cairn::tools
