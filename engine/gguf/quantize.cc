// Packs rows of floats into a tensor type, and plainly unpacks them again.
//
// The layouts are ggml's (ggml-common.h); little-endian halves throughout.
#include "engine/gguf/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "engine/gguf/half.h"
#include "kvstore/base/check.h"

namespace cairn::engine {
namespace {

void StoreHalf(float value, uint8_t* at) {
  const uint16_t half = FloatToHalf(value);
  std::memcpy(at, &half, sizeof(half));
}

float LoadHalf(const uint8_t* at) {
  uint16_t half;
  std::memcpy(&half, at, sizeof(half));
  return HalfToFloat(half);
}

int RoundTo(float value, int low, int high) {
  return std::clamp(static_cast<int>(std::lround(value)), low, high);
}

float Inverse(float scale) { return scale == 0.0f ? 0.0f : 1.0f / scale; }

// Sum of the magnitudes' largest, with its sign.
float Extreme(const float* values, int count) {
  float extreme = 0.0f;
  for (int i = 0; i < count; ++i) {
    if (std::fabs(values[i]) > std::fabs(extreme)) extreme = values[i];
  }
  return extreme;
}

// Q8_0: half d, then 32 signed bytes; value = d * q.
void PackQ8_0(const float* values, uint8_t* block) {
  const float scale = std::fabs(Extreme(values, 32)) / 127.0f;
  StoreHalf(scale, block);
  for (int i = 0; i < 32; ++i) {
    const int q = RoundTo(values[i] * Inverse(scale), -127, 127);
    block[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(q));
  }
}

void UnpackQ8_0(const uint8_t* block, float* values) {
  const float scale = LoadHalf(block);
  for (int i = 0; i < 32; ++i)
    values[i] = scale * static_cast<float>(static_cast<int8_t>(block[2 + i]));
}

// Value i of 32 lies in the low nibble of byte i, value i + 16 in its high nibble.
void StoreNibbles(const std::array<int, 32>& nibbles, uint8_t* at) {
  for (size_t i = 0; i < 16; ++i) at[i] = static_cast<uint8_t>(nibbles[i] | (nibbles[i + 16] << 4));
}

// Q4_0: half d, then 32 nibbles; value = d * (q - 8).
void PackQ4_0(const float* values, uint8_t* block) {
  const float scale = Extreme(values, 32) / -8.0f;
  StoreHalf(scale, block);
  std::array<int, 32> nibbles;
  for (size_t i = 0; i < 32; ++i) nibbles[i] = RoundTo(values[i] * Inverse(scale), -8, 7) + 8;
  StoreNibbles(nibbles, block + 2);
}

void UnpackQ4_0(const uint8_t* block, float* values) {
  const float scale = LoadHalf(block);
  for (int i = 0; i < 16; ++i) {
    values[i] = scale * static_cast<float>((block[2 + i] & 15) - 8);
    values[i + 16] = scale * static_cast<float>((block[2 + i] >> 4) - 8);
  }
}

// Q4_1: half d, half m, then 32 nibbles; value = d * q + m.
void PackQ4_1(const float* values, uint8_t* block) {
  const float low = *std::min_element(values, values + 32);
  const float high = *std::max_element(values, values + 32);
  const float scale = (high - low) / 15.0f;
  StoreHalf(scale, block);
  StoreHalf(low, block + 2);
  std::array<int, 32> nibbles;
  for (size_t i = 0; i < 32; ++i) nibbles[i] = RoundTo((values[i] - low) * Inverse(scale), 0, 15);
  StoreNibbles(nibbles, block + 4);
}

void UnpackQ4_1(const uint8_t* block, float* values) {
  const float scale = LoadHalf(block);
  const float low = LoadHalf(block + 2);
  for (int i = 0; i < 16; ++i) {
    values[i] = scale * static_cast<float>(block[4 + i] & 15) + low;
    values[i + 16] = scale * static_cast<float>(block[4 + i] >> 4) + low;
  }
}

// Q4_K: half d, half dmin, 12 bytes that hold eight 6-bit scales and eight 6-bit minima, then eight
// groups of 32 nibbles; value = d * scale * q - dmin * minimum. Groups 2j and 2j + 1 share 32
// bytes: low nibbles and high nibbles.
struct ScaleAndMinimum {
  int scale = 0;
  int minimum = 0;
};

ScaleAndMinimum LoadScales(const uint8_t* packed, size_t group) {
  if (group < 4) return {packed[group] & 63, packed[group + 4] & 63};
  return {(packed[group + 4] & 15) | ((packed[group - 4] >> 6) << 4),
          (packed[group + 4] >> 4) | ((packed[group] >> 6) << 4)};
}

void StoreScales(const std::array<ScaleAndMinimum, 8>& groups, uint8_t* packed) {
  std::memset(packed, 0, 12);
  for (size_t j = 0; j < 4; ++j) {
    packed[j] = static_cast<uint8_t>(groups[j].scale | ((groups[j + 4].scale >> 4) << 6));
    packed[j + 4] = static_cast<uint8_t>(groups[j].minimum | ((groups[j + 4].minimum >> 4) << 6));
    packed[j + 8] =
        static_cast<uint8_t>((groups[j + 4].scale & 15) | ((groups[j + 4].minimum & 15) << 4));
  }
}

void PackQ4_K(const float* values, uint8_t* block) {
  std::array<float, 8> scales;
  std::array<float, 8> minima;  // What is subtracted: never negative.
  for (size_t g = 0; g < 8; ++g) {
    const float* group = values + g * 32;
    minima[g] = std::max(0.0f, -*std::min_element(group, group + 32));
    scales[g] = std::max(0.0f, *std::max_element(group, group + 32) + minima[g]) / 15.0f;
  }
  StoreHalf(*std::max_element(scales.begin(), scales.end()) / 63.0f, block);
  StoreHalf(*std::max_element(minima.begin(), minima.end()) / 63.0f, block + 2);
  const float d = LoadHalf(block);
  const float dmin = LoadHalf(block + 2);
  std::array<ScaleAndMinimum, 8> groups;
  uint8_t* nibbles = block + 16;
  std::memset(nibbles, 0, 128);
  for (size_t g = 0; g < 8; ++g) {
    groups[g] = {RoundTo(scales[g] * Inverse(d), 0, 63), RoundTo(minima[g] * Inverse(dmin), 0, 63)};
    const float scale = d * static_cast<float>(groups[g].scale);
    const float minimum = dmin * static_cast<float>(groups[g].minimum);
    for (size_t i = 0; i < 32; ++i) {
      const int q = RoundTo((values[g * 32 + i] + minimum) * Inverse(scale), 0, 15);
      nibbles[g / 2 * 32 + i] = static_cast<uint8_t>(nibbles[g / 2 * 32 + i] | (q << (g % 2 * 4)));
    }
  }
  StoreScales(groups, block + 4);
}

void UnpackQ4_K(const uint8_t* block, float* values) {
  const float d = LoadHalf(block);
  const float dmin = LoadHalf(block + 2);
  for (size_t g = 0; g < 8; ++g) {
    const ScaleAndMinimum group = LoadScales(block + 4, g);
    for (size_t i = 0; i < 32; ++i) {
      const int q = (block[16 + g / 2 * 32 + i] >> (g % 2 * 4)) & 15;
      values[g * 32 + i] = d * static_cast<float>(group.scale) * static_cast<float>(q) -
                           dmin * static_cast<float>(group.minimum);
    }
  }
}

// Q6_K: 128 bytes of low nibbles, 64 bytes of upper two bits, 16 signed scales, half d;
// value = d * scale * (q - 32). Each half of 128 values is four quarters of 32: quarters 0 and 2
// share bytes 0..31 of the low nibbles (low, high), quarters 1 and 3 bytes 32..63; quarter c has
// bits 2c and 2c + 1 of the 32 upper bytes. There is one scale per 16 values.
struct PlaceQ6_K {
  size_t low_byte;
  size_t low_shift;
  size_t high_byte;
  size_t high_shift;
};

PlaceQ6_K PlaceOf(size_t i) {
  const size_t half = i / 128;
  const size_t quarter = i % 128 / 32;
  const size_t l = i % 32;
  return {.low_byte = half * 64 + quarter % 2 * 32 + l,
          .low_shift = quarter / 2 * 4,
          .high_byte = 128 + half * 32 + l,
          .high_shift = quarter * 2};
}

void PackQ6_K(const float* values, uint8_t* block) {
  std::memset(block, 0, 210);
  float scale_max = 0.0f;
  for (int g = 0; g < 16; ++g) {
    scale_max = std::max(scale_max, std::fabs(Extreme(values + g * 16, 16)) / 31.0f);
  }
  StoreHalf(scale_max / 127.0f, block + 208);
  const float d = LoadHalf(block + 208);
  for (size_t i = 0; i < 256; ++i) {
    const float group_scale = std::fabs(Extreme(values + i / 16 * 16, 16)) / 31.0f;
    const int scale = RoundTo(group_scale * Inverse(d), 0, 127);
    block[192 + i / 16] = static_cast<uint8_t>(scale);
    const int q = RoundTo(values[i] * Inverse(d * static_cast<float>(scale)), -32, 31) + 32;
    const PlaceQ6_K at = PlaceOf(i);
    block[at.low_byte] = static_cast<uint8_t>(block[at.low_byte] | ((q & 15) << at.low_shift));
    block[at.high_byte] = static_cast<uint8_t>(block[at.high_byte] | ((q >> 4) << at.high_shift));
  }
}

void UnpackQ6_K(const uint8_t* block, float* values) {
  const float d = LoadHalf(block + 208);
  for (size_t i = 0; i < 256; ++i) {
    const PlaceQ6_K at = PlaceOf(i);
    const int q = ((block[at.low_byte] >> at.low_shift) & 15) |
                  (((block[at.high_byte] >> at.high_shift) & 3) << 4);
    const int scale = static_cast<int8_t>(block[192 + i / 16]);
    values[i] = d * static_cast<float>(scale) * static_cast<float>(q - 32);
  }
}

void PackBlock(TensorType type, const float* values, uint8_t* block) {
  switch (type) {
    case TensorType::kF32:
      std::memcpy(block, values, sizeof(float));
      return;
    case TensorType::kF16:
      StoreHalf(*values, block);
      return;
    case TensorType::kQ8_0:
      PackQ8_0(values, block);
      return;
    case TensorType::kQ4_0:
      PackQ4_0(values, block);
      return;
    case TensorType::kQ4_1:
      PackQ4_1(values, block);
      return;
    case TensorType::kQ4_K:
      PackQ4_K(values, block);
      return;
    case TensorType::kQ6_K:
      PackQ6_K(values, block);
      return;
  }
}

void UnpackBlock(TensorType type, const uint8_t* block, float* values) {
  switch (type) {
    case TensorType::kF32:
      std::memcpy(values, block, sizeof(float));
      return;
    case TensorType::kF16:
      *values = LoadHalf(block);
      return;
    case TensorType::kQ8_0:
      UnpackQ8_0(block, values);
      return;
    case TensorType::kQ4_0:
      UnpackQ4_0(block, values);
      return;
    case TensorType::kQ4_1:
      UnpackQ4_1(block, values);
      return;
    case TensorType::kQ4_K:
      UnpackQ4_K(block, values);
      return;
    case TensorType::kQ6_K:
      UnpackQ6_K(block, values);
      return;
  }
}

}  // namespace

void PackRow(TensorType type, std::span<const float> values, kv::MutableByteSpan packed) {
  KV_CHECK(packed.size() == RowBytes(type, values.size()));
  const size_t step = BlockValues(type);
  for (size_t i = 0; i * step < values.size(); ++i) {
    PackBlock(type, values.data() + i * step, packed.data() + i * BlockBytes(type));
  }
}

void UnpackRow(TensorType type, kv::ByteSpan packed, std::span<float> values) {
  KV_CHECK(packed.size() == RowBytes(type, values.size()));
  const size_t step = BlockValues(type);
  for (size_t i = 0; i * step < values.size(); ++i) {
    UnpackBlock(type, packed.data() + i * BlockBytes(type), values.data() + i * step);
  }
}

}  // namespace cairn::engine
