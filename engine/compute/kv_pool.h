// Paged KV memory: a fixed number of equal blocks, each one contiguous range that a disk can fill.
//
// A block holds the keys and values of `block_tokens` consecutive positions of one sequence, for
// all layers. Its bytes mean the same wherever they lie: moved through the store and back into any
// block of any pool with the same PageLayout, they give the same results bit for bit.
#pragma once

#include <compare>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/model/llama_model.h"
#include "kvstore/base/bytes.h"
#include "kvstore/layout/kv_layout.h"

namespace cairn::engine {

struct BlockIndex {
  uint32_t value = 0;
  auto operator<=>(const BlockIndex&) const = default;
};

// Where a model's keys and values lie in a block, as IEEE half precision. How many bytes they are,
// kv::KvLayout says: what an engine keeps and what a plan counts come from one formula.
//   block: [layer][keys, values]; padded with zeros to whole sectors
//   keys:   [kv head][position / 16][head_dim][position % 16]   (16 positions side by side, so that
//                                                               scores need no shuffling)
//   values: [kv head][position][head_dim]
struct PageLayout {
  static constexpr uint32_t kTilePositions = 16;

  uint32_t layers = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t block_tokens = 32;  // A multiple of kTilePositions.

  static PageLayout For(const ModelShape& shape, uint32_t block_tokens);

  kv::KvLayout cached() const;  // What a position leaves in the cache, wherever it lies.
  uint64_t head_values() const { return uint64_t{block_tokens} * head_dim; }
  uint64_t token_bytes() const;  // Keys and values of one position, all layers.
  uint64_t block_bytes() const;  // A multiple of kv::kSectorSize.
  // Goes into the namespace's layout fingerprint: any difference in it makes blocks unusable.
  std::string Describe() const;
};

// Not thread-safe; the bytes of different blocks may be touched by different threads.
class KvPool {
 public:
  // `layout.block_tokens` is a multiple of 16; `block_count` is at least 1. Out of memory crashes.
  // Pages are taken from the system when first touched.
  KvPool(const PageLayout& layout, uint32_t block_count);

  // A block with one reference, with arbitrary content. None when all are in use.
  std::optional<BlockIndex> Allocate();
  // One more holder: a prefix shared by two sequences. Shared blocks are full and never written.
  void AddReference(BlockIndex block);
  // The last holder's release frees the block.
  void Release(BlockIndex block);

  uint32_t references(BlockIndex block) const { return references_[block.value]; }
  uint32_t block_count() const { return static_cast<uint32_t>(references_.size()); }
  uint32_t free_count() const { return static_cast<uint32_t>(free_.size()); }
  const PageLayout& layout() const { return layout_; }

  // layout().block_bytes() bytes, starting on a sector boundary: read the SSD straight into it.
  kv::MutableByteSpan bytes(BlockIndex block) {
    return {memory_.get() + block.value * block_bytes_, block_bytes_};
  }
  kv::ByteSpan bytes(BlockIndex block) const {
    return {memory_.get() + block.value * block_bytes_, block_bytes_};
  }
  // All blocks in order: what a transport registers once.
  kv::MutableByteSpan memory() { return {memory_.get(), block_bytes_ * block_count()}; }

 private:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };

  const PageLayout layout_;
  const uint64_t block_bytes_;
  std::unique_ptr<uint8_t, Free> memory_;
  std::vector<uint32_t> references_;  // By block; 0 is free.
  std::vector<BlockIndex> free_;      // The next one to give out is last.
};

}  // namespace cairn::engine
