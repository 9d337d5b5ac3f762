// `cairn scrub` and `cairn repair`: start, stop, status; both look the same from here.
#include <CLI/CLI.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "kvstore/config/quantity.h"
#include "tools/cairn/format.h"
#include "tools/cairn/session.h"
#include "tools/cairn/store_verbs.h"

namespace cairn::tools {
namespace {

using kv::Code;
using kv::MaintenanceStatus;
using kv::RemoteStore;
using kv::Result;
using kv::Status;

// What tells a scrub from a repair.
struct Kind {
  const char* name;
  const char* help;
  const char* start_help;
  kv::Task<Status> (RemoteStore::*start)(uint64_t);
  kv::Task<Status> (RemoteStore::*stop)();
  kv::Task<Result<MaintenanceStatus>> (RemoteStore::*status)();
};

constexpr Kind kScrub = {"scrub",
                         "read and check every record, and repair what is damaged",
                         "start one pass over every record",
                         &RemoteStore::StartScrub,
                         &RemoteStore::StopScrub,
                         &RemoteStore::ScrubStatus};
constexpr Kind kRepair = {"repair",
                          "write anew what stripes lost with their targets",
                          "start to restore lost shards, hottest first",
                          &RemoteStore::StartRepair,
                          &RemoteStore::StopRepair,
                          &RemoteStore::RepairStatus};

struct StartFlags {
  std::string rate = "0";
  bool wait = false;
};

Result<MaintenanceStatus> Ask(Session& session, const Kind& kind) {
  return session.Ask<Result<MaintenanceStatus>>(
      [&kind](RemoteStore& store) { return (store.*kind.status)(); });
}

std::string Line(const MaintenanceStatus& status) {
  return Percent(status.bytes_done, status.bytes_done + status.bytes_left) + " of " +
         kv::RoughBytes(static_cast<double>(status.bytes_done + status.bytes_left)) + ", " +
         std::to_string(status.shards_checked) + " shards checked, " +
         std::to_string(status.shards_damaged) + " damaged, " +
         std::to_string(status.shards_repaired) + " repaired, " +
         std::to_string(status.shards_failed) + " beyond repair";
}

void Print(Invocation& invocation, const Kind& kind, const MaintenanceStatus& status) {
  if (invocation.console.json) {
    invocation.console.Write(ToText(ToJson(status)));
    return;
  }
  std::string text = std::string(kind.name) + (status.running ? " is running" : " is not running");
  text += ", " + std::to_string(status.passes) + " passes done since the store started\n";
  if (status.running || status.shards_checked > 0) {
    text += (status.running ? "now   " : "last  ") + Line(status) + "\n";
  }
  if (status.running) {
    text += "left  about " + kv::FormatDuration(kv::Seconds(
                                 static_cast<int64_t>(status.seconds_left))) + "\n";
  }
  if (status.running && status.bytes_per_second > 0) {
    text += "rate  at most " +
            kv::RoughBytes(static_cast<double>(status.bytes_per_second)) + "/s\n";
  }
  invocation.console.Write(text);
}

// A pause between two looks at the store.
void Pause() {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, std::chrono::milliseconds(200));
}

Status Wait(Invocation& invocation, Session& session, const Kind& kind) {
  for (;;) {
    KV_ASSIGN_OR_RETURN(const MaintenanceStatus status, Ask(session, kind));
    if (!status.running) {
      Print(invocation, kind, status);
      if (status.shards_failed == 0) return Status();
      return Status(Code::kCorrupt, std::to_string(status.shards_failed) +
                                        " shards are beyond repair; their blocks are misses now");
    }
    invocation.console.Progress(std::string(kind.name) + ": " + Line(status));
    Pause();
  }
}

Status Start(Invocation& invocation, const Kind& kind, const StartFlags& flags) {
  KV_ASSIGN_OR_RETURN(const uint64_t rate, kv::ParseBytes(flags.rate));
  KV_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(invocation.options));
  KV_RETURN_IF_ERROR(session->Ask<Status>(
      [&kind, rate](RemoteStore& store) { return (store.*kind.start)(rate); }));
  if (flags.wait) return Wait(invocation, *session, kind);
  KV_ASSIGN_OR_RETURN(const MaintenanceStatus status, Ask(*session, kind));
  Print(invocation, kind, status);
  return Status();
}

Status Stop(Invocation& invocation, const Kind& kind) {
  KV_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(invocation.options));
  KV_RETURN_IF_ERROR(session->Ask<Status>(
      [&kind](RemoteStore& store) { return (store.*kind.stop)(); }));
  KV_ASSIGN_OR_RETURN(const MaintenanceStatus status, Ask(*session, kind));
  Print(invocation, kind, status);
  return Status();
}

Status Show(Invocation& invocation, const Kind& kind) {
  KV_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(invocation.options));
  KV_ASSIGN_OR_RETURN(const MaintenanceStatus status, Ask(*session, kind));
  Print(invocation, kind, status);
  return Status();
}

void Add(CLI::App& app, Invocation& invocation, const Kind& kind) {
  CLI::App* group = app.add_subcommand(kind.name, kind.help);
  group->require_subcommand(1);

  CLI::App* start = group->add_subcommand("start", kind.start_help);
  auto flags = std::make_shared<StartFlags>();
  start->add_option("--rate", flags->rate, "bytes a second at most; 0: no limit")
      ->type_name("BYTES")
      ->capture_default_str();
  start->add_flag("--wait", flags->wait, "return when it is done; fails if shards were beyond it");
  AddVerbOptions(*start, invocation);
  OnVerb(*start, invocation,
         [&invocation, &kind, flags] { return Start(invocation, kind, *flags); });

  CLI::App* stop = group->add_subcommand("stop", "stop it; what is done stays done");
  AddVerbOptions(*stop, invocation);
  OnVerb(*stop, invocation, [&invocation, &kind] { return Stop(invocation, kind); });

  CLI::App* status = group->add_subcommand("status", "show how far it is");
  AddVerbOptions(*status, invocation);
  OnVerb(*status, invocation, [&invocation, &kind] { return Show(invocation, kind); });
}

}  // namespace

void AddScrubVerbs(CLI::App& app, Invocation& invocation) { Add(app, invocation, kScrub); }
void AddRepairVerbs(CLI::App& app, Invocation& invocation) { Add(app, invocation, kRepair); }

}  // namespace cairn::tools
