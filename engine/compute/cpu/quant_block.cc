// Takes ggml's block formats (ggml-common.h, ggml-quants.c) apart, byte by byte.
#include "engine/compute/cpu/quant_block.h"

#include <cstring>

#include "kvstore/base/check.h"

namespace cairn::engine {
namespace {

uint16_t ReadHalf(const uint8_t* source) {
  uint16_t half;
  std::memcpy(&half, source, sizeof(half));
  return half;
}

// Sixteen bytes: the low nibbles are columns 0 to 15, the high ones 16 to 31.
void TakeNibbles(const uint8_t* source, uint8_t* codes) {
  for (int i = 0; i < 16; ++i) {
    codes[i] = source[i] & 15;
    codes[i + 16] = static_cast<uint8_t>(source[i] >> 4);
  }
}

// d, dmin, 8 scales and 8 minima of 6 bits in 12 bytes, 128 bytes of nibbles: 32 bytes hold two
// blocks, low nibbles the first.
void TakeQ4K(const uint8_t* source, QuantBlock& block) {
  block.scale = ReadHalf(source);
  block.minimum = ReadHalf(source + 2);
  const uint8_t* packed = source + 4;
  for (int i = 0; i < 4; ++i) {
    block.sub_scale[i] = packed[i] & 63;
    block.sub_minimum[i] = packed[i + 4] & 63;
    block.sub_scale[i + 4] = static_cast<int16_t>((packed[i + 8] & 15) | ((packed[i] >> 6) << 4));
    block.sub_minimum[i + 4] =
        static_cast<int16_t>((packed[i + 8] >> 4) | ((packed[i + 4] >> 6) << 4));
  }
  const uint8_t* nibbles = source + 16;
  for (int pair = 0; pair < 4; ++pair) {
    for (int i = 0; i < 32; ++i) {
      block.codes[64 * pair + i] = nibbles[32 * pair + i] & 15;
      block.codes[64 * pair + 32 + i] = static_cast<uint8_t>(nibbles[32 * pair + i] >> 4);
    }
  }
}

// 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 signed scales, d.
void TakeQ6K(const uint8_t* source, QuantBlock& block) {
  const uint8_t* low = source;
  const uint8_t* high = source + 128;
  for (int half = 0; half < 2; ++half, low += 64, high += 32) {
    uint8_t* codes = block.codes + 128 * half;
    for (int i = 0; i < 32; ++i) {
      codes[i] = static_cast<uint8_t>((low[i] & 15) | ((high[i] & 3) << 4));
      codes[i + 32] = static_cast<uint8_t>((low[i + 32] & 15) | (((high[i] >> 2) & 3) << 4));
      codes[i + 64] = static_cast<uint8_t>((low[i] >> 4) | (((high[i] >> 4) & 3) << 4));
      codes[i + 96] = static_cast<uint8_t>((low[i + 32] >> 4) | ((high[i] >> 6) << 4));
    }
  }
  for (int i = 0; i < 16; ++i) block.sub_scale[i] = static_cast<int8_t>(source[192 + i]);
  block.scale = ReadHalf(source + 208);
}

}  // namespace

void TakeApart(TensorType type, const uint8_t* source, QuantBlock& block) {
  switch (type) {
    case TensorType::kQ4_0:
      block.scale = ReadHalf(source);
      return TakeNibbles(source + 2, block.codes);
    case TensorType::kQ4_1:
      block.scale = ReadHalf(source);
      block.minimum = ReadHalf(source + 2);
      return TakeNibbles(source + 4, block.codes);
    case TensorType::kQ8_0:
      block.scale = ReadHalf(source);
      for (int i = 0; i < 32; ++i) block.codes[i] = static_cast<uint8_t>(source[2 + i] ^ 0x80);
      return;
    case TensorType::kQ4_K:
      return TakeQ4K(source, block);
    case TensorType::kQ6_K:
      return TakeQ6K(source, block);
    case TensorType::kF32:
    case TensorType::kF16:
      break;
  }
  KV_CHECK(false);
}

}  // namespace cairn::engine
