// Namespaces, lookup and get. Puts are in striped_put.cc.
#include "kvstore/client/striped_store.h"

#include <algorithm>
#include <deque>
#include <span>

#include "kvstore/base/digest.h"

namespace cairn::kv {
namespace {

// Runs of one chain that are loaded side by side.
constexpr size_t kRunLoadsMax = 8;

struct RunLoad {
  std::span<const BlockId> wanted;
  Task<Result<KnownRunPtr>> run;
};

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

// Searches from `hint` on, then before it.
std::optional<size_t> PositionOf(const std::vector<BlockId>& chain, const BlockId& id,
                                 size_t hint) {
  for (size_t i = 0; i < chain.size(); ++i) {
    const size_t at = (hint + i) % chain.size();
    if (chain[at] == id) return at;
  }
  return std::nullopt;
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
      index_(parts.clock, parts.targets, stats_, options.index_cache_bytes),
      writer_({.loop = parts.loop,
               .clock = parts.clock,
               .workers = parts.workers,
               .random = parts.random,
               .targets = parts.targets,
               .index = index_,
               .keeper = parts.keeper,
               .stats = stats_},
              options.write_buffer_bytes, options.shard_size_max),
      reader_(parts.loop, parts.clock, parts.targets, stats_, options.reader) {}

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
  if (size_t{record.parity_shards} + 1 > parts_.targets.ports().size()) {
    co_return Status(Code::kInvalid, "more parity shards than the store has targets for");
  }
  for (const auto& [id, known] : spaces_) {
    if (known.name != record.name) continue;
    if (Describe(known) != Describe(record)) {
      co_return Status(Code::kConflict, "namespace \"" + record.name + "\" exists with " +
                                            Describe(known) + "; asked for with " +
                                            Describe(record));
    }
    if (known == record) co_return id;
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

Task<Result<ChainHit>> StripedStore::Lookup(NamespaceId space, std::vector<BlockId> chain) {
  const SpaceRecord* known = FindSpace(space);
  if (known == nullptr) co_return Status(Code::kInvalid, "unknown namespace: attach first");
  const SpaceRecord record = *known;
  ChainHit hit;
  ++stats_.lookups;
  stats_.lookup_blocks += chain.size();
  // Runs are loaded side by side, more of them as the hit grows, and none once one has missed.
  std::deque<RunLoad> loads;
  size_t next = 0;
  size_t window = 1;
  while (next < chain.size() || !loads.empty()) {
    while (hit.miss == MissReason::kNone && next < chain.size() && loads.size() < window) {
      const size_t size = std::min<size_t>(chain.size() - next, record.run_blocks);
      const std::span<const BlockId> wanted(chain.data() + next, size);
      loads.push_back({wanted, index_.Load(RunOf(record, chain, next), wanted)});
      next += size;
    }
    if (loads.empty()) break;
    RunLoad load = std::move(loads.front());
    loads.pop_front();
    auto& task = load.run;
    const auto run = co_await task;
    if (hit.miss != MissReason::kNone) continue;  // It was on its way already.
    if (run.ok()) {
      AddRun(*run.value(), record, load.wanted, hit);
    } else {
      hit.miss = MissReason::kUnavailable;
    }
    window = std::min(window * 2, kRunLoadsMax);
  }
  stats_.lookup_hits += hit.blocks;
  if (hit.miss != MissReason::kNone) ++stats_.misses[static_cast<size_t>(hit.miss)];
  uint64_t bytes = 0;
  for (const uint32_t size : hit.sizes) bytes += size;
  if (hit.blocks > 0) {
    const double nanos = read_latency_nanos_ + static_cast<double>(bytes) / read_bytes_per_nano_;
    hit.load_estimate = {static_cast<int64_t>(nanos)};
  }
  co_return hit;
}

void StripedStore::AddRun(const KnownRun& run, const SpaceRecord& space,
                          std::span<const BlockId> wanted, ChainHit& hit) {
  for (const IndexClient::Answer& answer : index_.FindPrefix(run, space.id, wanted)) {
    if (answer.place == nullptr) {
      hit.miss = answer.reason;
      return;
    }
    KnownStripe& stripe = *answer.place->stripe;
    index_.Touch(stripe);
    ++hit.blocks;
    hit.sizes.push_back(stripe.manifest.blocks[answer.place->block].size);
  }
}

Task<std::vector<BlockReadResult>> StripedStore::Get(NamespaceId space, std::vector<BlockId> chain,
                                                     std::vector<BlockRead> reads,
                                                     Instant deadline) {
  std::vector<BlockReadResult> results;
  stats_.gets += reads.size();
  const SpaceRecord* known = FindSpace(space);
  if (known == nullptr) {
    stats_.get_misses += reads.size();
    results.assign(reads.size(), {Status(Code::kInvalid, "unknown namespace: attach first"), 0});
    co_return results;
  }
  const SpaceRecord record = *known;
  std::vector<Task<BlockReadResult>> calls;
  size_t cursor = 0;  // Reads mostly come in chain order.
  for (const BlockRead& read : reads) {
    const std::optional<size_t> at = PositionOf(chain, read.id, cursor);
    if (!at) {
      calls.push_back(GetOne({}, {read.id, {}}, deadline));
      continue;
    }
    cursor = *at;
    calls.push_back(GetOne(RunOf(record, chain, cursor), read, deadline));
  }
  const Instant began = parts_.clock.Now();
  uint64_t bytes = 0;
  for (Task<BlockReadResult>& call : calls) {
    results.push_back(co_await call);
    bytes += results.back().size;
    ++(results.back().status.ok() ? stats_.get_hits : stats_.get_misses);
  }
  stats_.bytes_got += bytes;
  if (bytes > 0) NoteRead(bytes, parts_.clock.Now() - began);
  co_return results;
}

Task<BlockReadResult> StripedStore::GetOne(RunKey key, BlockRead read, Instant deadline) {
  BlockReadResult result;
  const std::vector<BlockId> wanted{read.id};
  if (key == RunKey{}) {
    result.status = Status(Code::kInvalid, "the block is not in the chain");
    co_return result;
  }
  auto run = co_await index_.Load(key, wanted);
  if (!run.ok()) {
    result.status = run.status();
    co_return result;
  }
  const IndexClient::Answer answer = index_.Find(*run.value(), key.space, read.id);
  if (answer.place == nullptr) {
    const bool gone = answer.reason != MissReason::kUnavailable;
    result.status = Status(gone ? Code::kNotFound : Code::kUnavailable);
    co_return result;
  }
  // Several stripes have it only after a crash: copies, since whoever reads awaits.
  std::vector<KnownRun::Place> places;
  for (const KnownRun::Place& place : run.value()->Find(read.id)) {
    if (index_.WhyNot(*place.stripe) == MissReason::kNone) places.push_back(place);
  }
  for (const KnownRun::Place& place : places) {
    const uint32_t size = place.stripe->manifest.blocks[place.block].size;
    if (read.into.size() < size) {
      result.status = Status(Code::kInvalid, std::to_string(size).append(" bytes are needed"));
      co_return result;
    }
    index_.Touch(*place.stripe);
    result.status = co_await reader_.ReadBlock(place.stripe, place.block, read.into, deadline);
    if (result.status.ok()) {
      result.size = size;
      co_return result;
    }
    if (result.status.code() == Code::kCorrupt) {
      result.status = co_await DropDamaged(place.stripe);
    }
  }
  co_return result;
}

// What can never be restored must not be shown by lookups, nor keep a put from storing it again.
Task<Status> StripedStore::DropDamaged(KnownStripePtr stripe) {
  const Manifest& manifest = stripe->manifest;
  const StripeName name{manifest.space, manifest.run, manifest.stripe};
  if (!stripe->gone) {
    stripe->gone = true;
    ++stats_.dropped_stripes;
    parts_.log.Warning(manifest.stripe.ToHex().insert(0, "damaged beyond parity, dropped: "));
    co_await index_.Remove(name, MissReason::kUnavailable);
  }
  co_return Status(Code::kUnavailable, "damaged beyond parity");
}

Task<Status> StripedStore::Delete(NamespaceId space, std::vector<BlockId> chain, uint32_t first) {
  const SpaceRecord* known = FindSpace(space);
  if (known == nullptr) co_return Status(Code::kInvalid, "unknown namespace: attach first");
  const SpaceRecord record = *known;
  for (size_t at = first; at < chain.size();
       at = (at / record.run_blocks + 1) * record.run_blocks) {
    const RunKey key = RunOf(record, chain, at);
    const size_t end =
        std::min<size_t>(chain.size(), (at / record.run_blocks + 1) * record.run_blocks);
    const std::vector<BlockId> wanted(chain.begin() + static_cast<ptrdiff_t>(at),
                                      chain.begin() + static_cast<ptrdiff_t>(end));
    auto run = co_await index_.Load(key, wanted);
    KV_CO_RETURN_IF_ERROR(run.status());
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
      co_await index_.Remove(name, MissReason::kAbsent);
      ++stats_.deleted_stripes;
    }
  }
  co_return Status();
}

const SpaceRecord* StripedStore::FindSpace(NamespaceId space) const {
  const auto found = spaces_.find(space);
  return found == spaces_.end() ? nullptr : &found->second;
}

RunKey StripedStore::RunOf(const SpaceRecord& space, const std::vector<BlockId>& chain,
                           size_t at) const {
  return {space.id, RunId{chain[at - at % space.run_blocks]}};
}

void StripedStore::NoteRead(uint64_t bytes, Nanos took) {
  constexpr double kWeight = 0.1;
  const double nanos = std::max(1.0, static_cast<double>(took.value));
  // Small reads tell the latency, large ones the rate.
  if (bytes < 256 * kKiB) {
    read_latency_nanos_ += kWeight * (nanos - read_latency_nanos_);
  } else {
    const double transfer = std::max(nanos - read_latency_nanos_, nanos / 2);
    read_bytes_per_nano_ +=
        kWeight * (static_cast<double>(bytes) / transfer - read_bytes_per_nano_);
  }
}

uint64_t StripedStore::memory_bytes() const {
  return index_.memory_bytes() + writer_.memory_bytes() + reader_.memory_bytes();
}

}  // namespace cairn::kv
