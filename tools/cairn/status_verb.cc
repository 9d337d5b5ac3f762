// `cairn status`: one screen that says whether all is well, and `cairn metrics`.
#include <CLI/CLI.hpp>

#include "kvstore/config/quantity.h"
#include "kvstore/metrics/exposition.h"
#include "tools/cairn/format.h"
#include "tools/cairn/session.h"
#include "tools/cairn/store_verbs.h"
#include "tools/planner/quantity.h"

namespace cairn::tools {
namespace {

using kv::RemoteStore;
using kv::Result;
using kv::Status;

// All that the verbs here ask, in one go.
struct Overview {
  kv::StoreStats stats;
  std::vector<kv::TargetInfo> targets;
  std::vector<kv::SpaceInfo> spaces;
  kv::MaintenanceStatus scrub, repair;
};

Result<Overview> Look(Session& session) {
  Overview seen;
  KV_ASSIGN_OR_RETURN(seen.stats, session.Ask<Result<kv::StoreStats>>(
                                      [](RemoteStore& store) { return store.Stats(); }));
  KV_ASSIGN_OR_RETURN(seen.targets, session.Ask<Result<std::vector<kv::TargetInfo>>>(
                                        [](RemoteStore& store) { return store.ListTargets(); }));
  KV_ASSIGN_OR_RETURN(seen.spaces, session.Ask<Result<std::vector<kv::SpaceInfo>>>(
                                       [](RemoteStore& store) { return store.ListSpaces(); }));
  KV_ASSIGN_OR_RETURN(seen.scrub, session.Ask<Result<kv::MaintenanceStatus>>(
                                      [](RemoteStore& store) { return store.ScrubStatus(); }));
  KV_ASSIGN_OR_RETURN(seen.repair, session.Ask<Result<kv::MaintenanceStatus>>(
                                       [](RemoteStore& store) { return store.RepairStatus(); }));
  return seen;
}

std::string Count(uint64_t value) { return WithCommas(static_cast<double>(value), 0); }
std::string Rough(uint64_t bytes) { return kv::RoughBytes(static_cast<double>(bytes)); }

// What needs a person; empty when nothing does.
std::vector<std::string> Concerns(const Overview& seen) {
  std::vector<std::string> concerns;
  for (const kv::TargetInfo& target : seen.targets) {
    if (target.state == kv::TargetInfo::State::kServing) continue;
    concerns.push_back(target.label + " is " + std::string(StateName(target.state)) +
                       (target.reason.empty() ? "" : ": " + target.reason));
  }
  if (seen.stats.corrupt_shards > 0) {
    concerns.push_back(Count(seen.stats.corrupt_shards) +
                       " shards failed a checksum: run 'cairn scrub start'");
  }
  if (seen.scrub.shards_failed + seen.repair.shards_failed > 0) {
    concerns.push_back(Count(seen.scrub.shards_failed + seen.repair.shards_failed) +
                       " shards are beyond repair; their blocks are misses now");
  }
  return concerns;
}

std::string Maintenance(const kv::MaintenanceStatus& status) {
  if (!status.running) return "not running, " + Count(status.passes) + " passes done";
  return Percent(status.bytes_done, status.bytes_done + status.bytes_left) + " done, " +
         Count(status.shards_damaged) + " damaged, " + Count(status.shards_repaired) + " repaired";
}

std::string Misses(const kv::StoreStats& stats) {
  std::string text;
  VisitStats(stats, [&](std::string_view name, kv::StatKind, uint64_t value, std::string_view) {
    constexpr std::string_view kPrefix = "misses_";
    if (!name.starts_with(kPrefix) || name == "misses_none") return;
    text.append(text.empty() ? "" : ", ").append(name.substr(kPrefix.size()));
    text.append(" ").append(Count(value));
  });
  return text;
}

std::string Text(const Overview& seen, const std::string& address) {
  const kv::StoreStats& stats = seen.stats;
  size_t serving = 0;
  for (const kv::TargetInfo& target : seen.targets) {
    if (target.state == kv::TargetInfo::State::kServing) ++serving;
  }
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text.append(name).append(12 - name.size(), ' ').append(value).append("\n");
  };
  line("store", address);
  line("capacity", Rough(stats.capacity_bytes) + " raw, " + Rough(stats.free_bytes) + " free, " +
                       Rough(stats.live_bytes) + " live");
  line("targets", std::to_string(serving) + " of " + std::to_string(seen.targets.size()) +
                      " serving");
  line("namespaces", std::to_string(seen.spaces.size()));
  line("lookups", Count(stats.lookup_blocks) + " blocks asked, " +
                      Percent(stats.lookup_hits, stats.lookup_blocks) + " found");
  line("misses", Misses(stats));
  line("gets", Count(stats.gets) + " blocks asked, " + Percent(stats.get_hits, stats.gets) +
                   " returned, " + Rough(stats.bytes_got) + ", " + Count(stats.degraded_reads) +
                   " rebuilt from parity");
  std::array<char, 16> amplification{};
  std::snprintf(amplification.data(), amplification.size(), "%.3f", WriteAmplification(stats));
  line("puts", Count(stats.puts) + " blocks asked, " + Count(stats.puts_stored) + " stored, " +
                   Rough(stats.bytes_put) + ", write amplification " + amplification.data());
  line("removed", Count(stats.evicted_stripes) + " stripes evicted, " +
                      Count(stats.expired_stripes) + " expired, " + Count(stats.deleted_stripes) +
                      " deleted");
  line("scrub", Maintenance(seen.scrub));
  line("repair", Maintenance(seen.repair));
  line("memory", Rough(stats.memory_bytes));
  const std::vector<std::string> concerns = Concerns(seen);
  line("health", concerns.empty() ? "all is well" : concerns.front());
  for (size_t i = 1; i < concerns.size(); ++i) line("", concerns[i]);
  return text;
}

Json OverviewJson(const Overview& seen, const std::string& address) {
  Json json = {{"address", address}, {"healthy", Concerns(seen).empty()}};
  json["concerns"] = Concerns(seen);
  json["stats"] = ToJson(seen.stats);
  json["write_amplification"] = WriteAmplification(seen.stats);
  json["targets"] = Json::array();
  for (const kv::TargetInfo& target : seen.targets) json["targets"].push_back(ToJson(target));
  json["namespaces"] = Json::array();
  for (const kv::SpaceInfo& space : seen.spaces) json["namespaces"].push_back(ToJson(space));
  json["scrub"] = ToJson(seen.scrub);
  json["repair"] = ToJson(seen.repair);
  return json;
}

}  // namespace

void AddStatusVerb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb = app.add_subcommand("status", "show how a running store is");
  auto check = std::make_shared<bool>(false);
  verb->add_flag("--check", *check, "end with exit code 4 when something needs a person");
  AddVerbOptions(*verb, invocation);
  verb->callback([&invocation, check] {
    invocation.run = [&invocation, check] {
      auto session = Session::Open(invocation.options);
      if (!session.ok()) return Report(session.status());
      const auto seen = Look(*session.value());
      if (!seen.ok()) return Report(seen.status());
      const std::string& address = session.value()->address();
      if (!invocation.console.Write(invocation.console.json
                                        ? ToText(OverviewJson(seen.value(), address))
                                        : Text(seen.value(), address))) {
        return kExitClosed;
      }
      return *check && !Concerns(seen.value()).empty() ? kExitUnhealthy : kExitDone;
    };
  });
}

void AddMetricsVerb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb = app.add_subcommand(
      "metrics", "print the store's counters as Prometheus text; latencies are on /metrics only");
  AddVerbOptions(*verb, invocation);
  OnVerb(*verb, invocation, [&invocation]() -> Status {
    KV_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(invocation.options));
    KV_ASSIGN_OR_RETURN(const Overview seen, Look(*session));
    kv::MetricsSnapshot snapshot;
    snapshot.store = seen.stats;
    snapshot.targets = seen.targets;
    snapshot.spaces = seen.spaces;
    snapshot.scrub = seen.scrub;
    snapshot.repair = seen.repair;
    invocation.console.Write(invocation.console.json ? ToText(ToJson(seen.stats))
                                                     : MetricsText(snapshot));
    return Status();
  });
}

}  // namespace cairn::tools
