// Block bookkeeping and the layout arithmetic of the KV pool.
#include "engine/compute/kv_pool.h"

#include <cstring>

#include "kvstore/base/check.h"
#include "kvstore/base/units.h"

namespace cairn::engine {
namespace {

constexpr uint32_t kValueBytes = 2;  // Half precision.

}  // namespace

PageLayout PageLayout::For(const ModelShape& shape, uint32_t block_tokens) {
  return {.layers = shape.layers,
          .kv_heads = shape.kv_heads,
          .head_dim = shape.head_dim,
          .block_tokens = block_tokens};
}

kv::KvLayout PageLayout::cached() const {
  return {.model = {},
          .groups = {kv::AttentionGroup({.layers = layers,
                                         .kv_heads = kv_heads,
                                         .head_dim = head_dim,
                                         .element_bytes = kValueBytes})}};
}

uint64_t PageLayout::token_bytes() const { return cached().BlockBytes(1); }

uint64_t PageLayout::block_bytes() const {
  return kv::AlignUp(cached().BlockBytes(block_tokens), kv::kSectorSize);
}

std::string PageLayout::Describe() const {
  return "kv1 f16 layers=" + std::to_string(layers) + " kv_heads=" + std::to_string(kv_heads) +
         " head_dim=" + std::to_string(head_dim) + " block_tokens=" + std::to_string(block_tokens) +
         " tile=" + std::to_string(kTilePositions);
}

KvPool::KvPool(const PageLayout& layout, uint32_t block_count)
    : layout_(layout), block_bytes_(layout.block_bytes()), references_(block_count, 0) {
  KV_CHECK(block_count > 0);
  KV_CHECK(block_bytes_ > 0);
  KV_CHECK(layout.block_tokens % PageLayout::kTilePositions == 0);
  // One sector more: kernels load whole registers, and may read (never use) a few bytes past the
  // end.
  const uint64_t size = block_bytes_ * block_count + kv::kSectorSize;
  memory_.reset(static_cast<uint8_t*>(std::aligned_alloc(kv::kSectorSize, size)));
  KV_CHECK(memory_ != nullptr);
  const uint64_t used_bytes = layout.cached().BlockBytes(layout.block_tokens);
  free_.reserve(block_count);
  for (uint32_t i = block_count; i-- > 0;) {
    free_.push_back({i});
    const kv::MutableByteSpan padding = bytes({i}).subspan(used_bytes);
    if (!padding.empty()) std::memset(padding.data(), 0, padding.size());
  }
}

std::optional<BlockIndex> KvPool::Allocate() {
  if (free_.empty()) return std::nullopt;
  const BlockIndex block = free_.back();
  free_.pop_back();
  KV_CHECK(references_[block.value] == 0);
  references_[block.value] = 1;
  return block;
}

void KvPool::AddReference(BlockIndex block) {
  KV_CHECK(block.value < block_count());
  KV_CHECK(references_[block.value] > 0);
  ++references_[block.value];
}

void KvPool::Release(BlockIndex block) {
  KV_CHECK(block.value < block_count());
  KV_CHECK(references_[block.value] > 0);
  if (--references_[block.value] == 0) free_.push_back(block);
}

}  // namespace cairn::engine
