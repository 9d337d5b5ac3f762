// `cairn ls, inspect, targets`: what lies where.
#include <CLI/CLI.hpp>

#include "kvstore/config/quantity.h"
#include "tools/cairn/format.h"
#include "tools/cairn/keys.h"
#include "tools/cairn/session.h"
#include "tools/cairn/store_verbs.h"
#include "tools/planner/table.h"

namespace cairn::tools {
namespace {

using kv::BlockId;
using kv::Code;
using kv::RemoteStore;
using kv::Result;
using kv::Status;

constexpr uint32_t kPage = 1000;

std::string Rough(uint64_t bytes) { return kv::RoughBytes(static_cast<double>(bytes)); }

struct ListFlags {
  std::string space;
  uint64_t limit = 1000;
  bool all = false;
};

Status List(Invocation& invocation, const ListFlags& flags) {
  KV_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(invocation.options));
  KV_ASSIGN_OR_RETURN(const kv::SpaceInfo space, session->FindSpace(flags.space));
  const kv::UnixMillis now = UnixNow();
  Json json = {{"blocks", Json::array()}};
  Table table({"Block", ">Size", "Expires", "Last access", "Kept until"});
  uint64_t left = flags.all ? UINT64_MAX : flags.limit;
  std::string cursor;
  bool more = false;
  do {
    const auto ask = static_cast<uint32_t>(std::min<uint64_t>(left, kPage));
    KV_ASSIGN_OR_RETURN(const kv::BlockPage page,
                        session->Ask<Result<kv::BlockPage>>([&](RemoteStore& store) {
                          return store.ListBlocks(space.id, cursor, ask);
                        }));
    for (const kv::BlockInfo& block : page.blocks) {
      if (invocation.console.json) {
        json["blocks"].push_back(ToJson(block));
      } else {
        table.Add({BlockName(block.id, block.run), Rough(block.size),
                   FromNow(block.expires_at, now), FromNow(block.last_access, now),
                   FormatTime(block.keep_until)});
      }
    }
    left -= std::min<uint64_t>(left, page.blocks.size());
    more = !page.next.empty();
    cursor = page.next;
    invocation.console.Progress(std::to_string(flags.limit - left) + " blocks");
  } while (more && left > 0);
  json["more"] = more;
  invocation.console.Write(invocation.console.json ? ToText(json) : table.ToText());
  if (more && !invocation.console.json) {
    invocation.console.Write("There are more: --all, or a larger --limit.\n");
  }
  return Status();
}

struct InspectFlags {
  std::string space;
  KeyFlags key;
  std::string token_file;
  bool verify = false;
};

Json DetailsJson(const kv::BlockDetails& details, bool verified) {
  Json json = ToJson(details.block);
  const kv::Manifest& manifest = details.manifest;
  json["data_shards"] = manifest.data_shards;
  json["parity_shards"] = manifest.parity_shards;
  json["shard_size"] = manifest.shard_size;
  json["stripe_blocks"] = manifest.blocks.size();
  json["index_places"] = details.index_places;
  json["shards"] = Json::array();
  for (const kv::ShardInfo& shard : details.shards) {
    Json row = {{"index", shard.index.value},
                {"target", shard.target.value},
                {"present", shard.present}};
    row["place"] = shard.place == UINT32_MAX ? Json() : Json(shard.place);
    if (verified) row["verified"] = shard.present && shard.verified.ok();
    if (!shard.verified.ok()) row["reason"] = shard.verified.ToString();
    json["shards"].push_back(std::move(row));
  }
  return json;
}

std::string DetailsText(const kv::BlockDetails& details, bool verified) {
  const kv::UnixMillis now = UnixNow();
  const kv::Manifest& manifest = details.manifest;
  std::string replicas;
  for (const uint32_t place : details.index_places) {
    replicas.append(replicas.empty() ? "" : ", ").append(std::to_string(place));
  }
  std::string text = "block        " + BlockName(details.block.id, details.block.run) +
                     "\nsize         " + std::to_string(details.block.size) + " bytes" +
                     "\nexpires      " + FromNow(details.block.expires_at, now) +
                     "\nlast access  " + FromNow(details.block.last_access, now) +
                     "\nkept until   " + FormatTime(details.block.keep_until) +
                     "\nstripe       " + details.block.stripe.ToHex() + ", " +
                     std::to_string(manifest.data_shards) + "+" +
                     std::to_string(manifest.parity_shards) + ", " +
                     std::to_string(manifest.blocks.size()) + " blocks, shards of " +
                     kv::FormatBytes(manifest.shard_size) + "\nindex on     " +
                     (replicas.empty() ? "other nodes" : "targets " + replicas) +
                     "\n\n";
  Table table({">Shard", "Kind", ">Target", "State"});
  for (const kv::ShardInfo& shard : details.shards) {
    std::string state = shard.present ? "present" : "missing";
    if (!shard.verified.ok()) {
      state = shard.verified.ToString();
    } else if (verified && shard.present) {
      state = "verified";
    }
    table.Add({std::to_string(shard.index.value),
               shard.index.value < manifest.data_shards ? "data" : "parity",
               shard.place == UINT32_MAX ? "id " + std::to_string(shard.target.value)
                                         : std::to_string(shard.place),
               state});
  }
  return text + table.ToText();
}

Status Inspect(Invocation& invocation, const InspectFlags& flags) {
  KV_ASSIGN_OR_RETURN(const std::vector<BlockId> chain, ParseKey(flags.key));
  KV_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(invocation.options));
  KV_ASSIGN_OR_RETURN(const kv::SpaceInfo space, session->FindSpace(flags.space));
  const auto at = static_cast<uint32_t>(chain.size() - 1);
  const auto details = session->Ask<Result<kv::BlockDetails>>([&](RemoteStore& store) {
    return store.Inspect(space.id, chain, at, flags.verify);
  });
  if (details.code() == Code::kNotFound) {
    return Status(Code::kNotFound, "'" + flags.key.key + "' is a miss in " + flags.space);
  }
  KV_RETURN_IF_ERROR(details.status());
  invocation.console.Write(invocation.console.json
                               ? ToText(DetailsJson(details.value(), flags.verify))
                               : DetailsText(details.value(), flags.verify));
  return Status();
}

Status Targets(Invocation& invocation) {
  KV_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(invocation.options));
  KV_ASSIGN_OR_RETURN(const std::vector<kv::TargetInfo> targets,
                      session->Ask<Result<std::vector<kv::TargetInfo>>>(
                          [](RemoteStore& store) { return store.ListTargets(); }));
  Json json = {{"targets", Json::array()}};
  Table table({">Place", "Label", "State", ">Capacity", ">Free", ">Live", ">Shards", ">Read",
               ">Written", ">Moved", ">Corrupt"});
  for (const kv::TargetInfo& target : targets) {
    json["targets"].push_back(ToJson(target));
    std::string state(StateName(target.state));
    if (!target.reason.empty()) state += ": " + target.reason;
    table.Add({std::to_string(target.place), target.label, state, Rough(target.capacity_bytes),
               Rough(target.free_bytes), Rough(target.live_bytes), std::to_string(target.shards),
               Rough(target.bytes_read), Rough(target.bytes_appended), Rough(target.bytes_moved),
               std::to_string(target.corrupt_reads)});
  }
  invocation.console.Write(invocation.console.json ? ToText(json) : table.ToText());
  return Status();
}

}  // namespace

void AddListVerb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb = app.add_subcommand("ls", "list the blocks of a namespace");
  auto flags = std::make_shared<ListFlags>();
  verb->add_option("NAMESPACE", flags->space, "name of the namespace")->required()->type_name("");
  verb->add_option("--limit", flags->limit, "at most so many")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
      ->type_name("COUNT")
      ->capture_default_str();
  verb->add_flag("--all", flags->all, "all of them");
  AddVerbOptions(*verb, invocation);
  OnVerb(*verb, invocation, flags, List);
}

void AddInspectVerb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb = app.add_subcommand("inspect", "show where the shards of a block lie");
  auto flags = std::make_shared<InspectFlags>();
  verb->add_option("NAMESPACE", flags->space, "name of the namespace")->required()->type_name("");
  AddKeyOptions(*verb, flags->key);
  verb->add_flag("--verify", flags->verify, "read and check every shard");
  AddVerbOptions(*verb, invocation);
  OnVerb(*verb, invocation, flags, Inspect);
}

void AddTargetsVerb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb = app.add_subcommand("targets", "list the targets (SSDs) of a store");
  AddVerbOptions(*verb, invocation);
  OnVerb(*verb, invocation, [&invocation] { return Targets(invocation); });
}

}  // namespace cairn::tools
