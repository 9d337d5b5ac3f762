// A map of chunk lists, and a list by last use.
#include "kvstore/cache/memory_blocks.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kvstore/base/checksum.h"

namespace cairn::kv {
namespace {

UnixMillis After(UnixMillis now, uint32_t seconds) { return {now.value + int64_t{seconds} * 1000}; }

}  // namespace

Status MemoryBlocks::Put(const Key& key, std::span<const ByteSpan> parts, uint32_t ttl_seconds,
                         UnixMillis now) {
  uint64_t size = 0;
  for (const ByteSpan& part : parts) size += part.size();
  if (const auto found = blocks_.find(key); found != blocks_.end()) {
    if (now < found->second.info.expires_at) {
      Touch(key, true, now);
      return Status();
    }
    Remove(found);
  }
  const uint64_t footprint = ChunkArena::Footprint(size);
  if (footprint > arena_.bytes_max()) {
    return Status(Code::kNoSpace, "a block of " + std::to_string(size) +
                                      " bytes is larger than the store's memory for blocks (" +
                                      std::to_string(arena_.bytes_max()) + ")");
  }
  if (arena_.free_bytes() < footprint) Purge(now);
  while (arena_.free_bytes() < footprint) {
    Remove(blocks_.find(ages_.back()));
    ++evictions_;
  }
  Block block;
  block.info = {.size = static_cast<uint32_t>(size),
                .ttl_seconds = ttl_seconds,
                .checksum = 0,
                .expires_at = After(now, ttl_seconds)};
  block.chunks = arena_.Take(size);
  uint64_t offset = 0;
  for (const ByteSpan& part : parts) {
    arena_.Write(block.chunks, offset, part);
    offset += part.size();
  }
  block.info.checksum = arena_.ChecksumOf(block.chunks, size);
  ages_.push_front(key);
  block.age = ages_.begin();
  blocks_.emplace(key, std::move(block));
  return Status();
}

std::optional<MemoryBlocks::Info> MemoryBlocks::Find(const Key& key, UnixMillis now) const {
  const auto found = blocks_.find(key);
  if (found == blocks_.end() || now >= found->second.info.expires_at) return std::nullopt;
  return found->second.info;
}

void MemoryBlocks::Touch(const Key& key, bool refresh, UnixMillis now) {
  const auto found = blocks_.find(key);
  if (found == blocks_.end()) return;
  ages_.splice(ages_.begin(), ages_, found->second.age);
  Info& info = found->second.info;
  if (refresh) info.expires_at = std::max(info.expires_at, After(now, info.ttl_seconds));
}

void MemoryBlocks::CopyOut(const Key& key, uint64_t offset, MutableByteSpan into) const {
  const Block& block = blocks_.at(key);
  KV_CHECK(offset <= block.info.size && into.size() <= block.info.size - offset);
  arena_.Read(block.chunks, offset, into);
}

bool MemoryBlocks::Erase(const Key& key) {
  const auto found = blocks_.find(key);
  if (found == blocks_.end()) return false;
  Remove(found);
  return true;
}

void MemoryBlocks::EraseSpace(const NamespaceId& space) {
  auto at = blocks_.lower_bound(Key{space, BlockId{}});
  while (at != blocks_.end() && at->first.space == space) at = Remove(at);
}

MemoryBlocks::Usage MemoryBlocks::UsageOf(const NamespaceId& space) const {
  Usage usage;
  for (auto at = blocks_.lower_bound(Key{space, BlockId{}});
       at != blocks_.end() && at->first.space == space; ++at) {
    usage.bytes += at->second.info.size;
    ++usage.blocks;
  }
  return usage;
}

uint64_t MemoryBlocks::Purge(UnixMillis now) {
  uint64_t count = 0;
  for (auto at = blocks_.begin(); at != blocks_.end();) {
    if (now < at->second.info.expires_at) {
      ++at;
    } else {
      at = Remove(at);
      ++count;
    }
  }
  return count;
}

MemoryBlocks::Blocks::iterator MemoryBlocks::Remove(Blocks::iterator at) {
  ages_.erase(at->second.age);
  arena_.Return(at->second.chunks);
  return blocks_.erase(at);
}

}  // namespace cairn::kv
