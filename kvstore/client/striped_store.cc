// Namespaces and deletion. The verbs are in striped_{lookup,get,put}.cc.
#include "kvstore/client/striped_store.h"

#include <algorithm>
#include <utility>

namespace cairn::kv {

StripedStore::StripedStore(StripedStoreParts parts, StripedStoreOptions options)
    : parts_(parts),
      options_(options),
      writer_({.loop = parts.loop,
               .clock = parts.clock,
               .workers = parts.workers,
               .random = parts.random,
               .targets = parts.targets,
               .placement = parts.placement,
               .index = parts.index,
               .keeper = parts.keeper,
               .stats = parts.home.stats(),
               .network = parts.network},
              options.append_pace, options.write_buffer_bytes, options.shard_size_max),
      admission_(options.admission, options.capacity_bytes, parts.clock.Now()),
      reader_({.loop = parts.loop,
               .clock = parts.clock,
               .workers = parts.workers,
               .targets = parts.targets,
               .stats = parts.home.stats(),
               .network = parts.network},
              options.reader, options.cache) {
  parts.home.index().set_on_removed([this](StripeId stripe) { reader_.Forget(stripe); });
  parts.targets.set_is_slow([this](TargetId id) {
    const Pace& reads = reader_.stripes().pace();
    const Pace& appends = writer_.pace();
    return (reads.FewAreSlow() && reads.IsSlow(id)) || (appends.FewAreSlow() && appends.IsSlow(id));
  });
}

StripedStore::~StripedStore() { parts_.targets.set_is_slow({}); }

Task<void> StripedStore::Stop() {
  co_await writer_.Stop();
  co_await reader_.Stop();
}

Task<Status> StripedStore::LoadSpaces() {
  KV_CO_RETURN_IF_ERROR(co_await parts_.space_store.Load(spaces()));
  co_return co_await sweeper().CountAll();
}

Task<Result<NamespaceId>> StripedStore::Attach(NamespaceOptions options) {
  KV_CO_RETURN_IF_ERROR(CheckOptions(options));
  KV_CO_RETURN_IF_ERROR(co_await HearOf(options.name));
  if (const SpaceRecord* known = spaces().FindName(options.name)) {
    const NamespaceId id = known->id;
    KV_CO_RETURN_IF_ERROR(SpaceRegistry::CheckAttach(*known, options));
    co_return id;
  }
  if (!options.create) {
    co_return Status(Code::kNotFound, "no namespace is called \"" + options.name + "\"");
  }
  const NamespaceOptions wanted = options;
  auto made = co_await Register(std::move(options));
  if (made.code() != Code::kConflict) co_return made;
  co_return co_await AttachToOthers(wanted);
}

// What other processes made or deleted lately.
Task<Status> StripedStore::HearOf(std::string name) {
  if (spaces().FindName(name) != nullptr || !parts_.space_store.shared()) co_return Status();
  co_return co_await parts_.space_store.Load(spaces());
}

// Another process has made the namespace just now.
Task<Result<NamespaceId>> StripedStore::AttachToOthers(NamespaceOptions options) {
  KV_CO_RETURN_IF_ERROR(co_await parts_.space_store.Load(spaces()));
  const SpaceRecord* known = spaces().FindName(options.name);
  if (known == nullptr) co_return Status(Code::kUnavailable, "the namespace comes and goes");
  const NamespaceId id = known->id;
  KV_CO_RETURN_IF_ERROR(SpaceRegistry::CheckAttach(*known, options));
  co_return id;
}

Task<Result<NamespaceId>> StripedStore::CreateSpace(NamespaceOptions options) {
  options.create = true;
  KV_CO_RETURN_IF_ERROR(CheckOptions(options));
  KV_CO_RETURN_IF_ERROR(co_await HearOf(options.name));
  if (spaces().FindName(options.name) != nullptr) {
    co_return Status(Code::kConflict, "namespace \"" + options.name + "\" exists already");
  }
  co_return co_await Register(std::move(options));
}

Task<Result<NamespaceId>> StripedStore::Register(NamespaceOptions options) {
  if (size_t{options.parity_shards} + 1 > parts_.targets.ports().size()) {
    co_return Status(Code::kInvalid, "more parity shards than the store has targets for");
  }
  // Seen by an Attach that comes meanwhile.
  const SpaceRecord record = spaces().Create(options, parts_.clock.UnixNow());
  Status saved = co_await parts_.space_store.Save(record);
  if (saved.ok()) co_return record.id;
  if (saved.code() == Code::kConflict) {
    spaces().Forget(record);
    co_return saved;
  }
  const SpaceRecord tombstone = spaces().Bury(record.id, parts_.clock.UnixNow());
  (void)co_await parts_.space_store.Save(tombstone);
  co_return saved;
}

Task<Status> StripedStore::DeleteSpace(std::string name) {
  KV_CO_RETURN_IF_ERROR(co_await HearOf(name));
  const SpaceRecord* known = spaces().FindName(name);
  if (known == nullptr) {
    co_return Status(Code::kNotFound, "no namespace is called \"" + name + "\"");
  }
  const SpaceRecord record = *known;
  const SpaceRecord tombstone = spaces().Bury(record.id, parts_.clock.UnixNow());
  sweeper().NoteDeletion();
  Status saved = co_await parts_.space_store.Save(tombstone);
  if (saved.ok()) co_return saved;
  // Nobody has it: after a restart the namespace would live again. So it does now, unless its name
  // is taken by another since.
  if (spaces().FindName(name) == nullptr) spaces().Revive(record);
  co_return Status(saved.code(), "the namespace is not deleted: " + saved.message());
}

std::vector<SpaceInfo> StripedStore::Spaces() {
  std::vector<SpaceInfo> infos;
  for (const SpaceRecord* space : spaces().List()) {
    SpaceInfo& info = infos.emplace_back();
    info.id = space->id;
    info.options = {.name = space->name,
                    .fingerprint = space->fingerprint,
                    .data_shards = space->data_shards,
                    .parity_shards = space->parity_shards,
                    .run_blocks = space->run_blocks,
                    .retention = space->retention,
                    .ttl_seconds = space->ttl_seconds,
                    .medium = space->in_memory ? Medium::kMemory : Medium::kSsd,
                    .quota_bytes = space->quota_bytes};
    info.has_token = space->token_key.has_value();
    const SpaceUsage usage = parts_.home.ledger().UsageOf(space->id, NowSeconds());
    info.stored_bytes = usage.stored_bytes + parts_.home.ledger().Elsewhere(space->id);
    info.kept_bytes = usage.kept_bytes;
    info.stripes = usage.stripes;
  }
  return infos;
}

Task<Status> StripedStore::Delete(NamespaceId space, std::vector<BlockId> chain, uint32_t first) {
  const SpaceRecord* known = FindSpace(space);
  if (known == nullptr) co_return spaces().WhyNot(space);
  const SpaceRecord record = *known;
  Status outcome;
  PortsById changed;
  for (size_t at = first; at < chain.size();
       at = (at / record.run_blocks + 1) * record.run_blocks) {
    const RunKey key = RunOf(record, chain, at);
    const size_t end =
        std::min<size_t>(chain.size(), (at / record.run_blocks + 1) * record.run_blocks);
    const std::vector<BlockId> wanted(chain.begin() + static_cast<ptrdiff_t>(at),
                                      chain.begin() + static_cast<ptrdiff_t>(end));
    auto run = co_await parts_.index.LoadFiled(key);
    KV_CO_RETURN_IF_ERROR(run.status());
    if (!run.value()->answered_by_all) {
      outcome = Status(Code::kUnavailable, "not every target tells what it has of the run");
    }
    std::vector<StripeId> doomed;
    for (const BlockId& id : wanted) {
      for (const KnownRun::Place& place : run.value()->Find(id)) {
        const StripeId stripe = place.stripe->manifest.stripe;
        if (std::find(doomed.begin(), doomed.end(), stripe) != doomed.end()) continue;
        doomed.push_back(stripe);
        const Manifest& manifest = place.stripe->manifest;
        if (parts_.placement.RecoversFromShards()) AddConcerned(manifest, changed);
        for (TargetPort* port : parts_.placement.FilersOf(stripe)) changed[port->id()] = port;
      }
    }
    for (const StripeId& stripe : doomed) {
      const StripeName name{key.space, key.run, stripe};
      Status removed = co_await DeleteStripe(name);
      if (!removed.ok()) outcome = std::move(removed);
      ++stats().deleted_stripes;
    }
  }
  // What was deleted does not come back after a power cut.
  std::vector<Task<Status>> syncs;
  for (const auto& [id, port] : changed) syncs.push_back(port->Sync());
  for (Task<Status>& sync : syncs) {
    Status synced = co_await sync;
    if (!synced.ok()) outcome = std::move(synced);
  }
  co_return outcome;
}

void StripedStore::AddConcerned(const Manifest& manifest, PortsById& ports) const {
  for (TargetPort* port : parts_.placement.HoldersOf(&manifest)) ports[port->id()] = port;
  for (TargetPort* port : parts_.placement.FilersOf(manifest.stripe)) ports[port->id()] = port;
}

Task<Status> StripedStore::DeleteStripe(StripeName name) {
  if (!options_.target_away) co_return co_await parts_.index.Remove(name, MissReason::kAbsent);
  std::vector<Task<Status>> notes;
  for (TargetPort* port : parts_.placement.FilersOf(name.stripe)) {
    if (port->MayHaveFiled(name.stripe)) notes.push_back(port->SaveRemoval(name.stripe));
  }
  Status outcome;
  for (Task<Status>& note : notes) {
    Status noted = co_await note;
    if (!noted.ok()) outcome = std::move(noted);
  }
  Status removed = co_await parts_.index.Remove(name, MissReason::kAbsent);
  co_return removed.ok() ? std::move(outcome) : std::move(removed);
}

const SpaceRecord* StripedStore::FindSpace(NamespaceId space) const {
  return spaces().Find(space);
}

uint32_t StripedStore::NowSeconds() const {
  return static_cast<uint32_t>(parts_.clock.UnixNow().value / 1000);
}

RunKey StripedStore::RunOf(const SpaceRecord& space, const std::vector<BlockId>& chain,
                           size_t at) const {
  return {space.id, RunId{chain[at - at % space.run_blocks]}};
}

std::optional<PaceSeen<TargetId>> StripedStore::SlowTargets() const {
  const Instant now = parts_.clock.Now();
  auto seen = reader_.stripes().pace().Seen(now);
  const auto written = writer_.pace().Seen(now);
  if (!seen) return written;
  if (!written) return seen;
  seen->asked = std::max(seen->asked, written->asked);
  for (const TargetId id : written->slow) {
    if (std::find(seen->slow.begin(), seen->slow.end(), id) == seen->slow.end()) {
      seen->slow.push_back(id);
    }
  }
  std::sort(seen->slow.begin(), seen->slow.end());  // The same in each report.
  return seen;
}

StoreStats StripedStore::FullStats() {
  StoreStats full = stats();
  parts_.home.AddStats(full);
  full.memory_bytes = memory_bytes();
  return full;
}

uint64_t StripedStore::memory_bytes() const {
  return parts_.home.memory_bytes() + writer_.memory_bytes() + reader_.memory_bytes() +
         admission_.memory_bytes();
}

}  // namespace cairn::kv
