// Puts one position's keys and values into its KV block.
#pragma once

#include <cstdint>

#include "engine/compute/cpu/kernels.h"
#include "engine/compute/kv_pool.h"

namespace cairn::engine {

// Byte offsets into a block of the keys and values of one layer and head.
struct HeadPlace {
  size_t keys = 0;
  size_t values = 0;
};
HeadPlace PlaceOf(const PageLayout& layout, uint32_t layer, uint32_t kv_head);

// `keys` and `values` are kv_heads * head_dim floats, padded to 16. `position` is of the sequence.
void WriteKv(const CpuKernelTable& kernels, const PageLayout& layout, uint32_t layer,
             uint32_t position, const float* keys, const float* values, uint8_t* block);

}  // namespace cairn::engine
