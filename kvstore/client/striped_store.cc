// Namespaces and deletion. The verbs are in striped_{lookup,get,put}.cc.
#include "kvstore/client/striped_store.h"

#include <algorithm>

#include "kvstore/base/digest.h"

namespace cairn::kv {
namespace {

NamespaceId SpaceIdOf(const NamespaceOptions& options) {
  Sha256Stream digest;
  digest.Add(AsBytes("cairn namespace 1"));
  for (const std::string& part : {options.name, options.fingerprint}) {
    const std::string length = std::to_string(part.size()).append(":");
    digest.Add(AsBytes(length));
    digest.Add(AsBytes(part));
  }
  return NamespaceId{Id128::FromDigest(digest.Finish())};
}

SpaceRecord RecordOf(const NamespaceOptions& options) {
  return {.id = SpaceIdOf(options),
          .name = options.name,
          .fingerprint = options.fingerprint,
          .data_shards = options.data_shards,
          .parity_shards = options.parity_shards,
          .run_blocks = options.run_blocks,
          .retention = options.retention,
          .ttl_seconds = options.ttl_seconds};
}

std::string Describe(const SpaceRecord& space) {
  std::string text = "fingerprint \"";
  text.append(space.fingerprint).append("\", shape ").append(std::to_string(space.data_shards));
  text.append("+").append(std::to_string(space.parity_shards)).append(", runs of ");
  return text.append(std::to_string(space.run_blocks));
}

Status CheckOptions(const NamespaceOptions& options) {
  const auto bad = [](const char* what) { return Status(Code::kInvalid, what); };
  if (options.name.empty() || options.name.size() > 128) return bad("a name has 1 to 128 bytes");
  if (options.fingerprint.size() > 4 * kKiB) return bad("a fingerprint has at most 4 KiB");
  if (options.data_shards < 1 || options.data_shards > kDataShardsMax) {
    return bad("data shards must be 1 to 32");
  }
  if (options.parity_shards > kParityShardsMax) return bad("parity shards must be 0 to 8");
  if (options.run_blocks < 1 || options.run_blocks > kStripeBlocksMax) {
    return bad("run blocks must be 1 to 256");
  }
  if (options.ttl_seconds < 1) return bad("a TTL is at least one second");
  return Status();
}

}  // namespace

StripedStore::StripedStore(StripedStoreParts parts, StripedStoreOptions options)
    : parts_(parts),
      options_(options),
      leases_(parts.random, options.leases),
      index_({.clock = parts.clock, .targets = parts.targets, .stats = stats_, .leases = leases_},
             options.index_cache_bytes),
      writer_({.loop = parts.loop,
               .clock = parts.clock,
               .workers = parts.workers,
               .random = parts.random,
               .targets = parts.targets,
               .index = index_,
               .keeper = parts.keeper,
               .stats = stats_},
              options.write_buffer_bytes, options.shard_size_max),
      reader_(parts.loop, parts.clock, parts.targets, stats_, options.reader, options.cache) {
  index_.set_on_removed([this](StripeId stripe) { reader_.Forget(stripe); });
}

Task<Status> StripedStore::LoadSpaces() {
  bool answered = parts_.targets.ports().empty();
  for (TargetPort* port : parts_.targets.ports()) {
    auto records = co_await port->ListSpaces();
    if (!records.ok()) {
      parts_.log.Warning("namespaces of a target cannot be read: " + records.status().ToString());
      continue;
    }
    answered = true;
    for (SpaceRecord& record : records.value()) spaces_.insert_or_assign(record.id, record);
  }
  if (!answered) co_return Status(Code::kUnavailable, "no target lists its namespaces");
  // Targets that were formatted anew learn them here.
  for (const auto& [id, record] : spaces_) {
    for (TargetPort* port : parts_.targets.ports()) {
      const Status saved = co_await port->SaveSpace(record);
      if (!saved.ok()) parts_.log.Warning("a namespace is not saved: " + saved.ToString());
    }
  }
  co_return Status();
}

Task<Result<NamespaceId>> StripedStore::Attach(NamespaceOptions options) {
  KV_CO_RETURN_IF_ERROR(CheckOptions(options));
  const SpaceRecord record = RecordOf(options);
  for (const auto& [id, known] : spaces_) {
    if (known.name != record.name) continue;
    if (Describe(known) != Describe(record)) {
      co_return Status(Code::kConflict, "namespace \"" + record.name + "\" exists with " +
                                            Describe(known) + "; asked for with " +
                                            Describe(record));
    }
    if (known == record) co_return id;
  }
  if (size_t{record.parity_shards} + 1 > parts_.targets.ports().size()) {
    co_return Status(Code::kInvalid, "more parity shards than the store has targets for");
  }
  spaces_.insert_or_assign(record.id, record);  // Seen by an Attach that comes meanwhile.
  size_t saved = 0;
  Status failure(Code::kUnavailable, "no target takes the namespace");
  for (TargetPort* port : parts_.targets.ports()) {
    Status outcome = co_await port->SaveSpace(record);
    if (outcome.ok()) {
      ++saved;
    } else {
      failure = std::move(outcome);
    }
  }
  if (saved < std::min<size_t>(2, parts_.targets.ports().size())) co_return failure;
  co_return record.id;
}

Task<Status> StripedStore::Delete(NamespaceId space, std::vector<BlockId> chain, uint32_t first) {
  const SpaceRecord* known = FindSpace(space);
  if (known == nullptr) co_return Status(Code::kInvalid, "unknown namespace: attach first");
  const SpaceRecord record = *known;
  Status outcome;
  for (size_t at = first; at < chain.size();
       at = (at / record.run_blocks + 1) * record.run_blocks) {
    const RunKey key = RunOf(record, chain, at);
    const size_t end =
        std::min<size_t>(chain.size(), (at / record.run_blocks + 1) * record.run_blocks);
    const std::vector<BlockId> wanted(chain.begin() + static_cast<ptrdiff_t>(at),
                                      chain.begin() + static_cast<ptrdiff_t>(end));
    auto run = co_await index_.LoadAll(key);
    KV_CO_RETURN_IF_ERROR(run.status());
    if (!run.value()->answered_by_all) {
      outcome = Status(Code::kUnavailable, "not every target tells what it has of the run");
    }
    std::vector<StripeId> doomed;
    for (const BlockId& id : wanted) {
      for (const KnownRun::Place& place : run.value()->Find(id)) {
        const StripeId stripe = place.stripe->manifest.stripe;
        if (std::find(doomed.begin(), doomed.end(), stripe) == doomed.end())
          doomed.push_back(stripe);
      }
    }
    for (const StripeId& stripe : doomed) {
      const StripeName name{key.space, key.run, stripe};
      Status removed = co_await index_.Remove(name, MissReason::kAbsent);
      if (!removed.ok()) outcome = std::move(removed);
      ++stats_.deleted_stripes;
    }
  }
  co_return outcome;
}

const SpaceRecord* StripedStore::FindSpace(NamespaceId space) const {
  const auto found = spaces_.find(space);
  return found == spaces_.end() ? nullptr : &found->second;
}

RunKey StripedStore::RunOf(const SpaceRecord& space, const std::vector<BlockId>& chain,
                           size_t at) const {
  return {space.id, RunId{chain[at - at % space.run_blocks]}};
}

uint64_t StripedStore::memory_bytes() const {
  return index_.memory_bytes() + writer_.memory_bytes() + reader_.memory_bytes() +
         leases_.memory_bytes();
}

}  // namespace cairn::kv
