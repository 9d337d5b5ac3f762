// Everything is at hand: no call waits.
#include "kvstore/client/window_store.h"

#include <algorithm>
#include <utility>

#include "kvstore/base/digest.h"
#include "kvstore/client/scatter.h"
#include "kvstore/client/space_registry.h"

namespace cairn::kv {
namespace {

NamespaceId WindowIdOf(const NamespaceOptions& options) {
  Sha256Stream digest;
  digest.Add(AsBytes("cairn window 1"));
  for (const std::string& part : {options.name, options.fingerprint}) {
    const std::string length = std::to_string(part.size()).append(":");
    digest.Add(AsBytes(length));
    digest.Add(AsBytes(part));
  }
  return NamespaceId{Id128::FromDigest(digest.Finish())};
}

Status CheckWindow(const NamespaceOptions& options) {
  const auto bad = [](const char* what) { return Status(Code::kInvalid, what); };
  if (options.name.empty() || options.name.size() > 128) return bad("a name has 1 to 128 bytes");
  if (options.fingerprint.size() > 4 * kKiB) return bad("a fingerprint has at most 4 KiB");
  if (options.ttl_seconds < 1) return bad("a TTL is at least one second");
  if (options.quota_bytes > 0) return bad("a namespace in memory has no quota of its own");
  return CheckToken(options);
}

}  // namespace

Task<Result<NamespaceId>> WindowStore::Attach(NamespaceOptions options) {
  const bool in_memory = options.medium == Medium::kMemory;
  if (const auto found = FindName(options.name); found != spaces_.end()) {
    const auto& [known, token_key] = found->second;
    const bool same = TokenFits(token_key, options) && in_memory &&
                      known.fingerprint == options.fingerprint &&
                      known.ttl_seconds == options.ttl_seconds &&
                      known.retention == options.retention;
    if (same) co_return found->first;
    co_return Status(Code::kConflict,
                     "namespace \"" + options.name + "\" exists in memory with other options");
  }
  if (!in_memory) co_return co_await behind_.Attach(std::move(options));
  if (!options.create) {
    KV_CO_RETURN_IF_ERROR(CheckWindow(options));
    co_return Status(Code::kNotFound, "no such namespace");
  }
  co_return CreateSpace(std::move(options));
}

Result<NamespaceId> WindowStore::CreateSpace(NamespaceOptions options) {
  options.create = true;
  KV_RETURN_IF_ERROR(CheckWindow(options));
  if (FindName(options.name) != spaces_.end()) {
    return Status(Code::kConflict, "namespace \"" + options.name + "\" exists already");
  }
  const NamespaceId id = WindowIdOf(options);
  Space& space = spaces_[id];
  space.token_key = TokenKeyOf(options);
  space.options = std::move(options);
  space.options.token.clear();
  space.options.proof.reset();
  return id;
}

Status WindowStore::DeleteSpace(const std::string& name) {
  const auto found = FindName(name);
  if (found == spaces_.end()) {
    return Status(Code::kNotFound, "no namespace is called \"" + name + "\"");
  }
  blocks_.EraseSpace(found->first);
  spaces_.erase(found);
  return Status();
}

std::vector<SpaceInfo> WindowStore::Spaces() const {
  std::vector<SpaceInfo> infos;
  for (const auto& [id, space] : spaces_) {
    SpaceInfo& info = infos.emplace_back();
    info.id = id;
    info.options = space.options;
    info.has_token = space.token_key.has_value();
    const MemoryBlocks::Usage usage = blocks_.UsageOf(id);
    info.stored_bytes = usage.bytes;
    info.stripes = usage.blocks;
  }
  const auto by_name = [](const SpaceInfo& a, const SpaceInfo& b) {
    return a.options.name < b.options.name;
  };
  std::sort(infos.begin(), infos.end(), by_name);
  return infos;
}

Task<Result<ChainHit>> WindowStore::Lookup(NamespaceId space, std::vector<BlockId> chain,
                                           LeaseOrder lease) {
  const NamespaceOptions* known = Find(space);
  if (known == nullptr) co_return co_await behind_.Lookup(space, std::move(chain), lease);
  ChainHit hit;
  for (const BlockId& id : chain) {
    const uint32_t size = Hit(space, *known, id);
    if (size == 0) {
      hit.miss = MissReason::kAbsent;
      CountMiss();
      break;
    }
    ++hit.blocks;
    hit.sizes.push_back(size);
  }
  ++stats_.lookups;
  stats_.lookup_blocks += chain.size();
  stats_.lookup_hits += hit.blocks;
  co_return hit;
}

Task<Result<EachHit>> WindowStore::LookupEach(NamespaceId space, std::vector<BlockId> chain,
                                              uint32_t first, LeaseOrder lease) {
  const NamespaceOptions* known = Find(space);
  if (known == nullptr) {
    co_return co_await behind_.LookupEach(space, std::move(chain), first, lease);
  }
  EachHit hit;
  ++stats_.lookups;
  for (size_t i = first; i < chain.size(); ++i) {
    const uint32_t size = Hit(space, *known, chain[i]);
    ++stats_.lookup_blocks;
    stats_.lookup_hits += size > 0 ? 1 : 0;
    if (size == 0) CountMiss();
    hit.blocks.push_back({size, size == 0 ? MissReason::kAbsent : MissReason::kNone});
  }
  co_return hit;
}

Task<std::vector<Status>> WindowStore::Renew(std::vector<LeaseId> leases, LeaseOrder order) {
  return behind_.Renew(std::move(leases), order);
}

Task<Status> WindowStore::Release(std::vector<LeaseId> leases, SessionId session) {
  return behind_.Release(std::move(leases), session);
}

Task<std::vector<BlockReadResult>> WindowStore::Get(NamespaceId space, std::vector<BlockId> chain,
                                                    std::vector<BlockRead> reads,
                                                    Instant deadline) {
  const NamespaceOptions* known = Find(space);
  if (known == nullptr) {
    co_return co_await behind_.Get(space, std::move(chain), std::move(reads), deadline);
  }
  std::vector<BlockReadResult> results;
  for (const BlockRead& read : reads) {
    const BlockReadResult& result = results.emplace_back(GetOne(space, *known, chain, read));
    ++stats_.gets;
    ++(result.status.ok() ? stats_.get_hits : stats_.get_misses);
    stats_.bytes_got += result.status.ok() ? result.size : 0;
  }
  co_return results;
}

BlockReadResult WindowStore::GetOne(const NamespaceId& space, const NamespaceOptions& options,
                                    const std::vector<BlockId>& chain, const BlockRead& read) {
  if (std::find(chain.begin(), chain.end(), read.id) == chain.end()) {
    return {Status(Code::kInvalid, "the block is not in the chain"), 0};
  }
  if (read.scatter.size() > kScatterMax) {
    return {Status(Code::kInvalid, "more segments than a read may have"), 0};
  }
  const uint32_t size = Hit(space, options, read.id);
  if (size == 0) return {Status(Code::kNotFound), 0};
  const Segments into = read.scatter.empty() ? Segments(&read.into, 1) : Segments(read.scatter);
  if (SizeOf(into) < size) {
    return {Status(Code::kInvalid, std::to_string(size).append(" bytes are needed")), 0};
  }
  const MemoryBlocks::Key key{space, read.id};
  ForEachPart(into, size, [&](uint64_t offset, MutableByteSpan part) {
    blocks_.CopyOut(key, offset, part);
  });
  const auto info = blocks_.Find(key, clock_.UnixNow());
  return {.status = Status(), .size = size, .checksum = info->checksum};
}

Task<std::vector<Status>> WindowStore::Put(ChainPut put) {
  const NamespaceOptions* known = Find(put.space);
  if (known == nullptr) co_return co_await behind_.Put(std::move(put));
  const Status checked = CheckPut(put);
  std::vector<Status> outcomes(put.blocks.size(), checked);
  stats_.puts += put.blocks.size();
  if (!checked.ok()) {
    stats_.puts_failed += put.blocks.size();
    co_return outcomes;
  }
  const uint32_t ttl = put.ttl_seconds.value_or(known->ttl_seconds);
  for (size_t i = 0; i < put.blocks.size(); ++i) {
    const BlockWrite& block = put.blocks[i];
    const std::span<const ByteSpan> parts = block.gather.empty()
                                                ? std::span<const ByteSpan>(&block.bytes, 1)
                                                : std::span<const ByteSpan>(block.gather);
    const MemoryBlocks::Key key{put.space, block.id};
    if (blocks_.Find(key, clock_.UnixNow())) {
      (void)Hit(put.space, *known, block.id);  // The first writer won.
      continue;
    }
    outcomes[i] = PutOne(key, parts, ttl, block.checksum);
    ++(outcomes[i].ok() ? stats_.puts_stored : stats_.puts_failed);
  }
  co_return outcomes;
}

Status WindowStore::PutOne(const MemoryBlocks::Key& key, std::span<const ByteSpan> parts,
                           uint32_t ttl_seconds, std::optional<uint64_t> checksum) {
  const UnixMillis now = clock_.UnixNow();
  KV_RETURN_IF_ERROR(blocks_.Put(key, parts, ttl_seconds, now));
  const std::optional<MemoryBlocks::Info> stored = blocks_.Find(key, now);
  if (!checksum || stored->checksum == *checksum) {
    stats_.bytes_put += stored->size;
    return Status();
  }
  blocks_.Erase(key);
  return Status(Code::kCorrupt, "the bytes do not have the checksum that came with them");
}

Status WindowStore::CheckPut(const ChainPut& put) const {
  const auto bad = [](const char* what) { return Status(Code::kInvalid, what); };
  if (put.chain.size() < put.blocks.size() || put.first > put.chain.size() - put.blocks.size()) {
    return bad("the chain does not reach to the last block");
  }
  if (put.keep_until.value > 0) return bad("memory keeps nothing for certain: no keep_until");
  if (put.ttl_seconds && *put.ttl_seconds < 1) return bad("a TTL is at least one second");
  for (size_t i = 0; i < put.blocks.size(); ++i) {
    const BlockWrite& block = put.blocks[i];
    if (block.id != put.chain[put.first + i]) {
      return bad("the blocks are not the chain's, in order");
    }
    if (block.gather.size() > kScatterMax) return bad("more segments than a block may have");
    uint64_t size = block.gather.empty() ? block.bytes.size() : 0;
    for (const ByteSpan& part : block.gather) size += part.size();
    if (size == 0 || size > kBlockSizeMax) return bad("a block has 1 byte to 64 MiB");
  }
  return Status();
}

Task<std::vector<Status>> WindowStore::Touch(NamespaceId space, std::vector<BlockId> chain,
                                             uint32_t first, UnixMillis keep_until) {
  const NamespaceOptions* known = Find(space);
  if (known == nullptr) {
    co_return co_await behind_.Touch(space, std::move(chain), first, keep_until);
  }
  std::vector<Status> outcomes;
  for (size_t i = first; i < chain.size(); ++i) {
    const bool here = Hit(space, *known, chain[i]) > 0;
    outcomes.push_back(Status(here ? Code::kOk : Code::kNotFound));
    if (here && keep_until.value > 0) {
      outcomes.back() = Status(Code::kInvalid, "memory keeps nothing for certain: no keep_until");
    }
  }
  co_return outcomes;
}

Task<Status> WindowStore::Delete(NamespaceId space, std::vector<BlockId> chain, uint32_t first) {
  if (Find(space) == nullptr) co_return co_await behind_.Delete(space, std::move(chain), first);
  for (size_t i = first; i < chain.size(); ++i) blocks_.Erase({space, chain[i]});
  co_return Status();
}

std::map<NamespaceId, WindowStore::Space>::iterator WindowStore::FindName(
    const std::string& name) {
  return std::find_if(spaces_.begin(), spaces_.end(),
                      [&](const auto& space) { return space.second.options.name == name; });
}

const NamespaceOptions* WindowStore::Find(const NamespaceId& space) const {
  const auto found = spaces_.find(space);
  return found == spaces_.end() ? nullptr : &found->second.options;
}

uint32_t WindowStore::Hit(const NamespaceId& space, const NamespaceOptions& options, BlockId id) {
  const MemoryBlocks::Key key{space, id};
  const UnixMillis now = clock_.UnixNow();
  const std::optional<MemoryBlocks::Info> info = blocks_.Find(key, now);
  if (!info) return 0;
  blocks_.Touch(key, options.retention == RetentionKind::kRefreshed, now);
  return info->size;
}

}  // namespace cairn::kv
