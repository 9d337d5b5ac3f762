// The write side of PageLayout: keys scatter into tiles of 16 positions, values lie in rows.
#include "engine/compute/cpu/kv_writer.h"

#include <cstring>

#include "kvstore/base/check.h"

namespace cairn::engine {
namespace {

constexpr uint32_t kChunk = 256;  // Values rounded at a time; a multiple of 16.
static_assert(kHeadDimMax <= kChunk);

}  // namespace

HeadPlace PlaceOf(const PageLayout& layout, uint32_t layer, uint32_t kv_head) {
  const uint64_t head_bytes = layout.head_values() * sizeof(uint16_t);
  const uint64_t keys = (uint64_t{layer} * 2 * layout.kv_heads + kv_head) * head_bytes;
  return {.keys = keys, .values = keys + layout.kv_heads * head_bytes};
}

void WriteKv(const CpuKernelTable& kernels, const PageLayout& layout, uint32_t layer,
             uint32_t position, const float* keys, const float* values, uint8_t* block) {
  constexpr uint32_t kTile = PageLayout::kTilePositions;
  const uint32_t head_dim = layout.head_dim;
  const uint32_t slot = position % layout.block_tokens;
  KV_CHECK(head_dim <= kHeadDimMax);
  uint16_t rounded[kChunk];
  for (uint32_t head = 0; head < layout.kv_heads; ++head) {
    const HeadPlace place = PlaceOf(layout, layer, head);
    kernels.to_half(keys + head * head_dim, head_dim, rounded);
    uint8_t* tile = block + place.keys + size_t{slot / kTile * kTile} * head_dim * sizeof(uint16_t);
    for (uint32_t column = 0; column < head_dim; ++column) {
      std::memcpy(tile + (size_t{column} * kTile + slot % kTile) * sizeof(uint16_t),
                  &rounded[column], sizeof(uint16_t));
    }
    kernels.to_half(values + head * head_dim, head_dim, rounded);
    std::memcpy(block + place.values + size_t{slot} * head_dim * sizeof(uint16_t), rounded,
                head_dim * sizeof(uint16_t));
  }
}

}  // namespace cairn::engine
