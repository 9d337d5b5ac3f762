// One quantisation block of a GGUF tensor taken apart into codes and scales.
#pragma once

#include <cstdint>

#include "engine/gguf/gguf.h"

namespace cairn::engine {

// The value of column c of the block, by type:
//   Q4_0  scale * (code - 8)               Q8_0  scale * (code - 128)
//   Q4_1  scale * code + minimum
//   Q4_K  scale * sub_scale[c / 32] * code - minimum * sub_minimum[c / 32]
//   Q6_K  scale * sub_scale[c / 16] * (code - 32)
struct QuantBlock {
  uint8_t codes[256] = {};
  uint16_t scale = 0;    // Half.
  uint16_t minimum = 0;  // Half.
  int16_t sub_scale[16] = {};
  int16_t sub_minimum[8] = {};
};

// `source` has BlockBytes(type) bytes; `type` is none of F32 and F16.
void TakeApart(TensorType type, const uint8_t* source, QuantBlock& block);

}  // namespace cairn::engine
