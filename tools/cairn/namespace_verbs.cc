// `cairn namespace create, list, delete`.
#include <CLI/CLI.hpp>
#include <iostream>

#include "kvstore/config/quantity.h"
#include "tools/cairn/format.h"
#include "tools/cairn/session.h"
#include "tools/cairn/store_verbs.h"
#include "tools/planner/table.h"

namespace cairn::tools {
namespace {

using kv::Code;
using kv::RemoteStore;
using kv::Result;
using kv::Status;

struct CreateFlags {
  std::string name;
  std::string fingerprint;
  std::string shape = "10+2";
  uint32_t run_blocks = kv::kRunBlocksDefault;
  std::string ttl = "3 d";
  bool fixed = false;
  bool memory = false;
  std::string quota = "0";
  std::string token_file;
};

Result<kv::NamespaceOptions> OptionsOf(const CreateFlags& flags) {
  kv::NamespaceOptions options;
  options.name = flags.name;
  options.fingerprint = flags.fingerprint;
  KV_RETURN_IF_ERROR(ParseShape(flags.shape, options));
  options.run_blocks = flags.run_blocks;
  options.retention = flags.fixed ? kv::RetentionKind::kFixed : kv::RetentionKind::kRefreshed;
  KV_ASSIGN_OR_RETURN(const kv::Nanos ttl, kv::ParseDuration(flags.ttl));
  const int64_t seconds = ttl.value / 1'000'000'000;
  if (seconds < 1 || seconds > UINT32_MAX) {
    return Status(Code::kInvalid, "--ttl: '" + flags.ttl + "' is out of range: 1 s to 49710 d");
  }
  options.ttl_seconds = static_cast<uint32_t>(seconds);
  options.medium = flags.memory ? kv::Medium::kMemory : kv::Medium::kSsd;
  KV_ASSIGN_OR_RETURN(options.quota_bytes, kv::ParseBytes(flags.quota));
  KV_RETURN_IF_ERROR(ReadSecret(flags.token_file, options.token));
  return options;
}

Status Create(Invocation& invocation, const CreateFlags& flags) {
  KV_ASSIGN_OR_RETURN(const kv::NamespaceOptions options, OptionsOf(flags));
  KV_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(invocation.options));
  KV_ASSIGN_OR_RETURN(const kv::NamespaceId id,
                      session->Ask<Result<kv::NamespaceId>>([&options](RemoteStore& store) {
                        return store.CreateSpace(options);
                      }));
  const Json json = {{"name", options.name}, {"id", id.ToHex()}};
  invocation.console.Write(invocation.console.json ? ToText(json)
                                                   : "created " + options.name + "\n");
  return Status();
}

std::string ListText(const std::vector<kv::SpaceInfo>& spaces) {
  Table table({"Name", "Shape", ">Run", "Retention", ">TTL", ">Quota", ">Stored", ">Kept",
               ">Stripes", "Token"});
  for (const kv::SpaceInfo& space : spaces) {
    const kv::NamespaceOptions& options = space.options;
    std::string kind = options.retention == kv::RetentionKind::kFixed ? "fixed" : "refreshed";
    if (options.medium == kv::Medium::kMemory) kind += ", memory";
    const auto bytes = [](uint64_t value) { return kv::RoughBytes(static_cast<double>(value)); };
    table.Add({options.name, ShapeName(options), std::to_string(options.run_blocks), kind,
               kv::FormatDuration(kv::Seconds(options.ttl_seconds)),
               options.quota_bytes == 0 ? "-" : bytes(options.quota_bytes),
               bytes(space.stored_bytes), bytes(space.kept_bytes), std::to_string(space.stripes),
               space.has_token ? "yes" : "-"});
  }
  return table.ToText();
}

Status List(Invocation& invocation) {
  KV_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(invocation.options));
  KV_ASSIGN_OR_RETURN(const std::vector<kv::SpaceInfo> spaces,
                      session->Ask<Result<std::vector<kv::SpaceInfo>>>(
                          [](RemoteStore& store) { return store.ListSpaces(); }));
  if (invocation.console.json) {
    Json json = {{"namespaces", Json::array()}};
    for (const kv::SpaceInfo& space : spaces) json["namespaces"].push_back(ToJson(space));
    invocation.console.Write(ToText(json));
  } else {
    invocation.console.Write(ListText(spaces));
  }
  return Status();
}

struct DeleteFlags {
  std::string name;
  bool yes = false;
};

// Asks a person; a script must say --yes.
Status Confirm(const DeleteFlags& flags) {
  if (flags.yes) return Status();
  if (!Console::InputIsTerminal()) {
    return Status(Code::kInvalid, "all blocks of '" + flags.name + "' would be deleted: say --yes");
  }
  std::cerr << "Delete namespace '" << flags.name << "' and all its blocks? Type its name: ";
  std::string answer;
  std::getline(std::cin, answer);
  if (answer != flags.name) return Status(Code::kConflict, "not deleted");
  return Status();
}

Status Delete(Invocation& invocation, const DeleteFlags& flags) {
  KV_RETURN_IF_ERROR(Confirm(flags));
  KV_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(invocation.options));
  KV_RETURN_IF_ERROR(session->Ask<Status>(
      [&flags](RemoteStore& store) { return store.DeleteSpace(flags.name); }));
  invocation.console.Write(invocation.console.json ? ToText({{"deleted", flags.name}})
                                                   : "deleted " + flags.name + "\n");
  return Status();
}

}  // namespace

void AddNamespaceVerbs(CLI::App& app, Invocation& invocation) {
  CLI::App* group = app.add_subcommand("namespace", "create, list and delete namespaces");
  group->require_subcommand(1);

  CLI::App* create = group->add_subcommand("create", "create a namespace");
  auto flags = std::make_shared<CreateFlags>();
  create->add_option("NAME", flags->name, "1 to 128 bytes")->required()->type_name("");
  create->add_option("--fingerprint", flags->fingerprint,
                     "all on which the meaning of the bytes depends: who attaches names the same")
      ->type_name("TEXT");
  create->add_option("--shape", flags->shape, "data and parity shards of a stripe")
      ->type_name("K+M")
      ->capture_default_str();
  create->add_option("--run-blocks", flags->run_blocks,
                     "blocks of a chain that are looked up together; 1 for independent keys")
      ->check(CLI::Range(1u, kv::kStripeBlocksMax))
      ->type_name("COUNT")
      ->capture_default_str();
  create->add_option("--ttl", flags->ttl, "how long blocks are kept")
      ->type_name("TIME")
      ->capture_default_str();
  create->add_flag("--fixed", flags->fixed, "count the TTL from the put, not from the last hit");
  create->add_flag("--memory", flags->memory, "keep blocks in memory only: gone after a restart");
  create->add_option("--quota", flags->quota, "most bytes stored; 0: no limit")
      ->type_name("BYTES")
      ->capture_default_str();
  create->add_option("--token-file", flags->token_file,
                     "all who attach must know its first line")
      ->type_name("FILE");
  AddVerbOptions(*create, invocation);
  OnVerb(*create, invocation, flags, Create);

  CLI::App* list = group->add_subcommand("list", "list the namespaces");
  AddVerbOptions(*list, invocation);
  OnVerb(*list, invocation, [&invocation] { return List(invocation); });

  CLI::App* remove = group->add_subcommand("delete", "delete a namespace and all its blocks");
  auto remove_flags = std::make_shared<DeleteFlags>();
  remove->add_option("NAME", remove_flags->name, "of the namespace")->required()->type_name("");
  remove->add_flag("--yes", remove_flags->yes, "do not ask");
  AddVerbOptions(*remove, invocation);
  OnVerb(*remove, invocation, remove_flags, Delete);
}

}  // namespace cairn::tools
