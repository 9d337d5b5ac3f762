// Blocks that live in memory only, until their time is over or their room is needed: the class
// `window`. Nothing of it survives the process.
//
// Not thread-safe. Time is told by the caller: what has expired is as good as gone, whether or not
// its room is free already.
#pragma once

#include <compare>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>

#include "kvstore/base/result.h"
#include "kvstore/base/time.h"
#include "kvstore/cache/chunk_arena.h"
#include "kvstore/types/ids.h"

namespace cairn::kv {

inline constexpr uint32_t kWindowSecondsDefault = 180;

class MemoryBlocks {
 public:
  struct Key {
    NamespaceId space;
    BlockId id;
    auto operator<=>(const Key&) const = default;
  };
  struct Info {
    uint32_t size = 0;
    uint32_t ttl_seconds = 0;
    uint64_t checksum = 0;  // XXH3-64 of its bytes.
    UnixMillis expires_at;
  };

  // Blocks together take at most `bytes_max`, in whole chunks of ChunkArena::kChunkSize.
  explicit MemoryBlocks(uint64_t bytes_max) : arena_(bytes_max) {}

  // Keeps a copy of the parts, one after another, until now + ttl. When the block is here already
  // its bytes stay and its time is prolonged. Drops what has expired, then what was used least
  // lately, where room is needed. kNoSpace: larger than everything together may be.
  Status Put(const Key& key, std::span<const ByteSpan> parts, uint32_t ttl_seconds,
             UnixMillis now);

  // Nothing when it is not here, or expired.
  std::optional<Info> Find(const Key& key, UnixMillis now) const;
  // A hit: it is the one used last now, and, when `refresh`, kept for its ttl from now on.
  void Touch(const Key& key, bool refresh, UnixMillis now);
  // Copies bytes from `offset` on into all of `into`. The block is here, and they lie within it.
  void CopyOut(const Key& key, uint64_t offset, MutableByteSpan into) const;

  // False when it was not here.
  bool Erase(const Key& key);
  void EraseSpace(const NamespaceId& space);
  struct Usage {
    uint64_t bytes = 0;
    uint64_t blocks = 0;
  };
  // What is not yet expired, or not yet purged: over all its blocks.
  Usage UsageOf(const NamespaceId& space) const;
  // Frees the room of what has expired; its number.
  uint64_t Purge(UnixMillis now);

  size_t size() const { return blocks_.size(); }
  uint64_t evictions() const { return evictions_; }
  uint64_t bytes_max() const { return arena_.bytes_max(); }
  uint64_t memory_bytes() const { return arena_.memory_bytes() + blocks_.size() * kBlockNode; }

 private:
  static constexpr uint64_t kBlockNode = 256;  // Of the map and the list.
  struct Block {
    Info info;
    ChunkArena::Chunks chunks;
    std::list<Key>::iterator age;
  };
  using Blocks = std::map<Key, Block>;
  Blocks::iterator Remove(Blocks::iterator at);

  ChunkArena arena_;
  Blocks blocks_;
  std::list<Key> ages_;  // The front is the latest used.
  uint64_t evictions_ = 0;
};

}  // namespace cairn::kv
