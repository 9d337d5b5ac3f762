// A fixed amount of memory in equal chunks, so that blocks of any size fit without fragmentation.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kvstore/base/bytes.h"

namespace cairn::kv {

// Not thread-safe. Memory is taken from the system as it is first used, and kept.
class ChunkArena {
 public:
  static constexpr uint64_t kChunkSize = 16 * kKiB;

  explicit ChunkArena(uint64_t bytes_max) : chunk_count_(bytes_max / kChunkSize) {}

  using Chunks = std::vector<uint32_t>;

  // What `size` bytes take up: whole chunks.
  static uint64_t Footprint(uint64_t size) { return AlignUp(size, kChunkSize); }

  // Room for `size` bytes; a check fails when there is not that much left.
  Chunks Take(uint64_t size);
  // Leaves `chunks` empty.
  void Return(Chunks& chunks);

  // Copy in and out, from `offset` on. The bytes must lie within what was taken.
  void Write(const Chunks& chunks, uint64_t offset, ByteSpan from);
  void Read(const Chunks& chunks, uint64_t offset, MutableByteSpan into) const;
  // The first `size` bytes, in order: neighbouring chunks are one part.
  std::vector<ByteSpan> Parts(const Chunks& chunks, uint64_t size) const;
  // XXH3-64 of the first `size` bytes.
  uint64_t ChecksumOf(const Chunks& chunks, uint64_t size) const;

  uint64_t bytes_max() const { return chunk_count_ * kChunkSize; }
  uint64_t free_bytes() const { return bytes_max() - used_chunks_ * kChunkSize; }
  // Of memory that was ever used.
  uint64_t memory_bytes() const { return next_unused_ * kChunkSize; }

 private:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  uint8_t* At(uint32_t chunk) const { return memory_.get() + chunk * kChunkSize; }

  const uint64_t chunk_count_;
  uint64_t used_chunks_ = 0;
  uint32_t next_unused_ = 0;
  std::unique_ptr<uint8_t, Free> memory_;  // Reserved with the first Take.
  std::vector<uint32_t> returned_;
};

}  // namespace cairn::kv
