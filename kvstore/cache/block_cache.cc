// The policy says which keys stay; their bytes lie in chunks of the arena.
#include "kvstore/cache/block_cache.h"

#include <utility>

namespace cairn::kv {

BlockCache::BlockCache(BlockCacheOptions options)
    : options_(options), arena_(options.bytes_max), policy_(arena_.bytes_max()) {}

const BlockCache::Block* BlockCache::Find(const Key& key) {
  if (options_.bytes_max == 0) return nullptr;
  if (!policy_.Hit(key)) {
    ++stats_.misses;
    return nullptr;
  }
  const Block& block = *blocks_.at(key);
  ++stats_.hits;
  stats_.hit_bytes += block.size();
  return &block;
}

std::shared_ptr<const std::vector<ByteSpan>> BlockCache::Lend(const Key& key) {
  if (Find(key) == nullptr) return nullptr;
  const std::shared_ptr<Block>& block = blocks_.at(key);
  return {block, &block->parts_};
}

void BlockCache::CopyOut(const Block& block, uint64_t offset, MutableByteSpan into) const {
  KV_CHECK(offset <= block.size() && into.size() <= block.size() - offset);
  arena_.Read(block.chunks_, offset, into);
}

bool BlockCache::Wants(const Key& key, uint64_t size) {
  const uint64_t footprint = ChunkArena::Footprint(size);
  if (footprint > SizeMax() || policy_.Contains(key)) return false;
  return options_.fill_at_first_sight || policy_.Seen(key, footprint);
}

void BlockCache::Fill(const Key& key, ByteSpan bytes, uint64_t checksum) {
  const uint64_t footprint = ChunkArena::Footprint(bytes.size());
  if (footprint > SizeMax() || policy_.Contains(key)) return;
  std::vector<Key> evicted;
  KV_CHECK(policy_.Admit(key, footprint, evicted));
  for (const Key& gone : evicted) blocks_.erase(gone);
  stats_.evictions += evicted.size();
  if (arena_.free_bytes() < footprint) {
    policy_.Erase(key);
    return;
  }
  auto block = std::make_shared<Block>(arena_, bytes.size());
  arena_.Write(block->chunks_, 0, bytes);
  if (arena_.ChecksumOf(block->chunks_, bytes.size()) != checksum) {
    ++stats_.refused_fills;
    policy_.Erase(key);
    return;
  }
  ++stats_.fills;
  blocks_.emplace(key, std::move(block));
}

void BlockCache::Drop(StripeId stripe) {
  auto at = blocks_.lower_bound(Key{stripe, 0});
  while (at != blocks_.end() && at->first.stripe == stripe) {
    policy_.Erase(at->first);
    at = blocks_.erase(at);
  }
}

uint64_t BlockCache::memory_bytes() const {
  // Nodes of the maps and lists, beside the bytes themselves.
  constexpr uint64_t kEntry = 320;
  return arena_.memory_bytes() + (blocks_.size() + policy_.ghost_keys()) * kEntry;
}

}  // namespace cairn::kv
