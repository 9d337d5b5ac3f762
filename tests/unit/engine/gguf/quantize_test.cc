// Packing rows into each tensor type: the error is small, and known bytes unpack right.
// right.
#include "engine/gguf/quantize.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/gguf/half.h"
#include "kvstore/base/random.h"

namespace cairn::engine {
namespace {

TEST(Half, EveryHalfSurvivesTheRoundTrip) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const float value = HalfToFloat(static_cast<uint16_t>(half));
    if (std::isnan(value)) continue;
    ASSERT_EQ(FloatToHalf(value), half);
  }
}

// python3 -c "import struct; print([hex(struct.unpack('<H', struct.pack('<e', x))[0])
//   for x in (1.0, -2.0, 0.1, 65504.0, 6e-8, 1 + 2**-11, 1 + 3 * 2**-11, 2.0**-25)])"
TEST(Half, RoundsToNearestEvenLikeOthers) {
  EXPECT_EQ(FloatToHalf(1.0f), 0x3c00);
  EXPECT_EQ(FloatToHalf(-2.0f), 0xc000);
  EXPECT_EQ(FloatToHalf(0.1f), 0x2e66);
  EXPECT_EQ(FloatToHalf(65504.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(6e-8f), 0x1);
  EXPECT_EQ(FloatToHalf(1.0f + 0x1.0p-11f), 0x3c00);
  EXPECT_EQ(FloatToHalf(1.0f + 0x1.8p-10f), 0x3c02);
  EXPECT_EQ(FloatToHalf(0x1.0p-25f), 0x0);
  EXPECT_EQ(FloatToHalf(1e6f), 0x7c00);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
}

struct Expectation {
  TensorType type;
  float error_max;  // Relative to the root mean square of the row.
};

TEST(Quantize, ErrorIsWithinWhatTheTypeCanHold) {
  const Expectation expectations[] = {{TensorType::kF32, 0.0f},   {TensorType::kF16, 0.0005f},
                                      {TensorType::kQ8_0, 0.01f}, {TensorType::kQ4_0, 0.12f},
                                      {TensorType::kQ4_1, 0.11f}, {TensorType::kQ4_K, 0.11f},
                                      {TensorType::kQ6_K, 0.03f}};
  for (const Expectation& expectation : expectations) {
    kv::Random random(3);
    std::vector<float> values(1024);
    float square = 0.0f;
    for (float& value : values) {
      value = static_cast<float>(random.Unit() + random.Unit() + random.Unit() - 1.5);
      square += value * value;
    }
    std::vector<uint8_t> packed(RowBytes(expectation.type, values.size()));
    PackRow(expectation.type, values, packed);
    std::vector<float> back(values.size());
    UnpackRow(expectation.type, packed, back);
    float error = 0.0f;
    for (size_t i = 0; i < values.size(); ++i)
      error += (back[i] - values[i]) * (back[i] - values[i]);
    EXPECT_LE(std::sqrt(error / square), expectation.error_max) << TensorTypeName(expectation.type);
  }
}

struct Golden {
  TensorType type;
  std::vector<size_t> halves;  // Where a half lies: 1.0 at byte 0, small odd values elsewhere.
  std::vector<float> eighths;  // Values 0, n/8, 2n/8, ... of the block.
  double magnitude_sum;
};

// python3 tests/unit/engine/gguf/make_unpack_goldens.py
TEST(Quantize, UnpacksKnownBytesLikeTheReference) {
  const std::vector<Golden> goldens = {
      {TensorType::kQ8_0, {0}, {85, -23, 125, 17, -91, 57, -51, 97}, 2172},
      {TensorType::kQ4_0, {0}, {-3, 1, 5, -7, -3, 6, -1, -7}, 123},
      {TensorType::kQ4_1, {0, 2}, {16.25, 4.25, 8.25, 12.25, 10.25, 4.25, 13.25, 6.25}, 285},
      {TensorType::kQ4_K, {0, 2}, {277.25, -10, 374.75, 167.5, 414, 502.5, 517.75, -25.75}, 50647},
      {TensorType::kQ6_K,
       {208},
       {22.359375, -3.609375, 47.5, 13.59375, 5.484375, -10.484375, 7.5625, -13.21875},
       4164.09375}};
  for (const Golden& golden : goldens) {
    std::vector<uint8_t> block(BlockBytes(golden.type));
    for (size_t i = 0; i < block.size(); ++i) block[i] = static_cast<uint8_t>(i * 37 + 11);
    for (const size_t at : golden.halves) {
      block[at] = 0;
      block[at + 1] = static_cast<uint8_t>(0x3c + at / 2);
    }
    std::vector<float> values(BlockValues(golden.type));
    UnpackRow(golden.type, block, values);
    double sum = 0;
    for (const float value : values) sum += std::fabs(value);
    EXPECT_EQ(sum, golden.magnitude_sum) << TensorTypeName(golden.type);
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(values[i * values.size() / 8], golden.eighths[i]) << TensorTypeName(golden.type);
    }
  }
}

TEST(Quantize, RowsOfZerosStayZero) {
  for (const TensorType type :
       {TensorType::kF32, TensorType::kF16, TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kQ4_1,
        TensorType::kQ4_K, TensorType::kQ6_K}) {
    const std::vector<float> zeros(256);
    std::vector<uint8_t> packed(RowBytes(type, zeros.size()));
    PackRow(type, zeros, packed);
    std::vector<float> back(zeros.size(), 1.0f);
    UnpackRow(type, packed, back);
    EXPECT_EQ(back, zeros) << TensorTypeName(type);
  }
}

}  // namespace
}  // namespace cairn::engine
