// Blocks that are read again and again, kept in memory beside the targets.
//
// A block is kept under its stripe's id and its place in it. Stripe ids are never drawn twice and
// stripes never change, so what is found here is right for as long as the index names the stripe;
// who may see it, and until when, the index alone decides, and it is asked first.
// Which blocks are kept: s3_fifo.h.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "kvstore/cache/chunk_arena.h"
#include "kvstore/cache/s3_fifo.h"
#include "kvstore/types/ids.h"

namespace cairn::kv {

struct BlockCacheOptions {
  uint64_t bytes_max = 64 * kMiB;  // 0: nothing is kept.
  // False: a block is copied in when it is asked for a second time, so that blocks that are read
  // once cost no copy. True: at once.
  bool fill_at_first_sight = false;
};

struct BlockCacheStats {
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t hit_bytes = 0;
  uint64_t fills = 0;
  uint64_t evictions = 0;
  uint64_t refused_fills = 0;  // The bytes did not have the checksum that they should have.
};

// Not thread-safe.
class BlockCache {
 public:
  struct Key {
    StripeId stripe;
    uint32_t block = 0;
    auto operator<=>(const Key&) const = default;
  };
  class Block;

  explicit BlockCache(BlockCacheOptions options);
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // Null when it is not here. Counts as a use. Valid until the next Fill or Drop.
  const Block* Find(const Key& key);
  // The bytes where they are: they stay, and take up room, until the last holder drops them, which
  // must be before the cache ends.
  std::shared_ptr<const std::vector<ByteSpan>> Lend(const Key& key);
  // Whether Find would find it. Does not count as a use.
  bool Holds(const Key& key) const { return blocks_.contains(key); }
  // Copies bytes from `offset` on into all of `into`, which must lie within the block.
  void CopyOut(const Block& block, uint64_t offset, MutableByteSpan into) const;

  // Whether Fill is worth its copy for a block of `size` bytes that is not here. Asking is a sight.
  bool Wants(const Key& key, uint64_t size);
  // Copies the block in, unless the copy does not have this XXH3-64: `bytes` may be memory that
  // somebody else writes to. Does nothing when it is here already, too large, or when what is lent
  // takes the room.
  void Fill(const Key& key, ByteSpan bytes, uint64_t checksum);

  // Forgets all blocks of the stripe. Only for their room: see above.
  void Drop(StripeId stripe);

  const BlockCacheStats& stats() const { return stats_; }
  uint64_t memory_bytes() const;

 private:
  uint64_t SizeMax() const { return arena_.bytes_max() / 4; }

  const BlockCacheOptions options_;
  ChunkArena arena_;
  S3Fifo<Key> policy_;
  std::map<Key, std::shared_ptr<Block>> blocks_;
  BlockCacheStats stats_;
};

// Its chunks go back when nobody holds it any more.
class BlockCache::Block {
 public:
  Block(ChunkArena& arena, uint64_t size)
      : arena_(arena), chunks_(arena.Take(size)), size_(size), parts_(arena.Parts(chunks_, size)) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { arena_.Return(chunks_); }

  uint64_t size() const { return size_; }

 private:
  friend class BlockCache;
  ChunkArena& arena_;
  ChunkArena::Chunks chunks_;
  const uint64_t size_;
  const std::vector<ByteSpan> parts_;
};

}  // namespace cairn::kv
