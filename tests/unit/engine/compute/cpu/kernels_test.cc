// Every kernel table gives the same bits, and those are near what plain double arithmetic gives.
#include "engine/compute/cpu/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "engine/compute/cpu/activations.h"
#include "engine/compute/cpu/attention_kernels.h"
#include "engine/compute/cpu/packed_matrix.h"
#include "engine/gguf/half.h"
#include "engine/gguf/quantize.h"
#include "kvstore/base/random.h"

namespace cairn::engine {
namespace {

std::vector<CpuKernels> SupportedKernels() {
  std::vector<CpuKernels> supported;
  for (const auto kernels : {CpuKernels::kPortable, CpuKernels::kAvx2, CpuKernels::kAvx512}) {
    if (CpuSupports(kernels)) supported.push_back(kernels);
  }
  return supported;
}

std::vector<float> RandomFloats(uint64_t seed, size_t count, float scale = 1.0f) {
  kv::Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.Unit() * 2 - 1) * scale;
  return values;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct MatrixCase {
  TensorType type;
  uint32_t rows;
  uint32_t columns;
};

// A packed weight matrix, its true values, and activations to multiply it with.
class Multiplication {
 public:
  Multiplication(const MatrixCase& shape, uint32_t tokens)
      : shape_(shape), tokens_(tokens), source_(tokens, shape.columns) {
    const auto values = RandomFloats(shape.columns, size_t{shape.rows} * shape.columns);
    const uint64_t row_bytes = RowBytes(shape.type, shape.columns);
    packed_.resize(row_bytes * shape.rows);
    weights_.resize(values.size());
    for (size_t row = 0; row < shape.rows; ++row) {
      const kv::MutableByteSpan bytes(packed_.data() + row * row_bytes, row_bytes);
      PackRow(shape.type, std::span(values).subspan(row * shape.columns, shape.columns), bytes);
      UnpackRow(shape.type, bytes, std::span(weights_).subspan(row * shape.columns, shape.columns));
    }
    const auto x = RandomFloats(7, size_t{tokens} * shape.columns, 3.0f);
    for (uint32_t t = 0; t < tokens; ++t) {
      std::memcpy(source_.row(t), &x[size_t{t} * shape.columns], shape.columns * sizeof(float));
    }
  }

  TensorView tensor() const {
    return {
        .name = "w", .type = shape_.type, .dims = {shape_.columns, shape_.rows}, .bytes = packed_};
  }

  // Tokens [first, first + count), row by row.
  std::vector<float> Run(CpuKernels kernels, uint32_t first, uint32_t count) {
    const CpuKernelTable& table = SelectCpuKernels(kernels);
    const PackedMatrix matrix(tensor());
    FloatRows rows(count, shape_.columns), output(count, shape_.rows);
    QuantisedForms forms(count, shape_.columns);
    for (uint32_t t = 0; t < count; ++t) {
      std::memcpy(rows.row(t), source_.row(first + t), shape_.columns * sizeof(float));
      forms.Quantise(table, FormSet::For({&matrix}), rows, shape_.columns, t);
    }
    const MatMulArgs args = forms.ArgumentsFor(matrix, rows, count, output);
    for (uint32_t p = 0; p < matrix.panel_count(); ++p) matrix.MultiplyPanel(table, p, args);
    std::vector<float> result;
    for (uint32_t t = 0; t < count; ++t) {
      result.insert(result.end(), output.row(t), output.row(t) + shape_.rows);
    }
    return result;
  }

  // The true product, and how far rounding the activations to 8 bits may move it: half a step per
  // column, and the step's own rounding to a half (2^-11).
  void ExpectNear(const std::vector<float>& result) const {
    const bool rounds = shape_.type != TensorType::kF32 && shape_.type != TensorType::kF16;
    for (uint32_t t = 0; t < tokens_; ++t) {
      for (uint32_t row = 0; row < shape_.rows; ++row) {
        double sum = 0, slack = 0;
        for (uint32_t c = 0; c < shape_.columns; ++c) {
          const double weight = weights_[size_t{row} * shape_.columns + c];
          sum += weight * source_.row(t)[c];
          slack += std::fabs(weight) * (rounds ? 3.0 / 127 / 2 + 3.0 / 1024 : 3e-6);
        }
        ASSERT_NEAR(result[size_t{t} * shape_.rows + row], sum, slack + 1e-5)
            << TensorTypeName(shape_.type) << " token " << t << " row " << row;
      }
    }
  }

 private:
  const MatrixCase shape_;
  const uint32_t tokens_;
  FloatRows source_;
  std::vector<uint8_t> packed_;
  std::vector<float> weights_;
};

std::vector<MatrixCase> MatrixCases() {
  std::vector<MatrixCase> cases;
  for (const TensorType type :
       {TensorType::kF32, TensorType::kF16, TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ8_0,
        TensorType::kQ4_K, TensorType::kQ6_K}) {
    const uint32_t block = BlockValues(type);
    cases.push_back({type, 16, block == 1 ? 10 : block});
    cases.push_back({type, 37, block == 1 ? 172 : 3 * block});
  }
  return cases;
}

TEST(Multiply, IsNearTheTrueProduct) {
  for (const MatrixCase& shape : MatrixCases()) {
    Multiplication multiplication(shape, 5);
    multiplication.ExpectNear(multiplication.Run(CpuKernels::kPortable, 0, 5));
  }
}

TEST(Multiply, GivesTheSameBitsWithEveryKernel) {
  for (const MatrixCase& shape : MatrixCases()) {
    Multiplication multiplication(shape, 11);
    const auto expected = multiplication.Run(CpuKernels::kPortable, 0, 11);
    for (const CpuKernels kernels : SupportedKernels()) {
      EXPECT_TRUE(SameBits(multiplication.Run(kernels, 0, 11), expected))
          << TensorTypeName(shape.type) << " x " << shape.columns << " " << CpuKernelsName(kernels);
    }
  }
}

TEST(Multiply, ATokenDoesNotSeeItsNeighbours) {
  for (const MatrixCase& shape : MatrixCases()) {
    Multiplication multiplication(shape, 17);
    for (const CpuKernels kernels : SupportedKernels()) {
      const auto together = multiplication.Run(kernels, 0, 17);
      for (uint32_t t = 0; t < 17; ++t) {
        const auto row = together.begin() + t * shape.rows;
        EXPECT_TRUE(SameBits(multiplication.Run(kernels, t, 1), {row, row + shape.rows}));
      }
    }
  }
}

TEST(ReadRow, EqualsThePlainUnpacking) {
  for (const MatrixCase& shape : MatrixCases()) {
    Multiplication multiplication(shape, 1);
    const TensorView tensor = multiplication.tensor();
    const uint64_t row_bytes = RowBytes(shape.type, shape.columns);
    std::vector<float> expected(shape.columns), actual(shape.columns);
    for (uint32_t row = 0; row < shape.rows; ++row) {
      UnpackRow(shape.type, tensor.bytes.subspan(row * row_bytes, row_bytes), expected);
      ReadRow(tensor, row, actual.data());
      for (uint32_t c = 0; c < shape.columns; ++c) {
        ASSERT_NEAR(actual[c], expected[c], 1e-6) << TensorTypeName(shape.type) << " " << c;
      }
    }
  }
}

// What a row kernel makes of `x`, as floats.
using RowKernel = std::vector<float> (*)(const CpuKernelTable& table, std::vector<float> x);

void ExpectSameBits(RowKernel kernel, const std::vector<float>& x) {
  const auto expected = kernel(SelectCpuKernels(CpuKernels::kPortable), x);
  for (const CpuKernels kernels : SupportedKernels()) {
    EXPECT_TRUE(SameBits(kernel(SelectCpuKernels(kernels), x), expected))
        << CpuKernelsName(kernels);
  }
}

// Of all sizes that matter: usual, huge, tiny, zero, exact halves between codes.
std::vector<float> AwkwardFloats() {
  std::vector<float> x = RandomFloats(3, 1024, 5.0f);
  for (size_t i = 0; i < 256; ++i) x[i] *= 1e-33f;
  for (size_t i = 256; i < 288; ++i) x[i] = 0.0f;
  for (size_t i = 288; i < 320; ++i) x[i] = static_cast<float>(i) - 288.5f;
  x[320] = 127.0f;
  x[600] = -1e20f;
  x[900] = 88.7f;
  x[901] = -104.0f;
  return x;
}

TEST(RowKernels, GiveTheSameBitsWithEveryKernel) {
  ExpectSameBits(
      [](const CpuKernelTable& table, std::vector<float> x) {
        std::vector<float> output(x.size()), weight = RandomFloats(9, x.size());
        table.rms_norm(x.data(), weight.data(), 1024, 1e-5f, output.data());
        return output;
      },
      RandomFloats(4, 1024, 9.0f));
  ExpectSameBits(
      [](const CpuKernelTable& table, std::vector<float> x) {
        const std::vector<float> up = RandomFloats(5, x.size());
        table.swiglu(x.data(), up.data(), 1024);
        return x;
      },
      AwkwardFloats());
  ExpectSameBits(
      [](const CpuKernelTable& table, std::vector<float> x) {
        std::vector<uint16_t> halves(x.size());
        table.to_half(x.data(), 1024, halves.data());
        return std::vector<float>(halves.begin(), halves.end());
      },
      AwkwardFloats());
}

template <bool k256>
std::vector<float> QuantisedAsFloats(const CpuKernelTable& table, std::vector<float> x) {
  std::vector<int8_t> codes(1024);
  std::vector<float> scales(32), scaled_sums(64), result;
  std::vector<int32_t> sums(64);
  const QuantisedRows row{codes.data(), scales.data(), sums.data(), scaled_sums.data()};
  (k256 ? table.quantise256 : table.quantise32)(x.data(), 1024, row);
  result.assign(codes.begin(), codes.end());
  result.insert(result.end(), scales.begin(), scales.end());
  result.insert(result.end(), scaled_sums.begin(), scaled_sums.end());
  for (const int32_t sum : sums) result.push_back(static_cast<float>(sum));
  return result;
}

TEST(Quantise, GivesTheSameBitsWithEveryKernel) {
  ExpectSameBits(QuantisedAsFloats<false>, AwkwardFloats());
  ExpectSameBits(QuantisedAsFloats<true>, AwkwardFloats());
}

TEST(Quantise, KeepsValuesToHalfAStep) {
  const auto x = RandomFloats(6, 1024, 5.0f);
  const auto per32 = QuantisedAsFloats<false>(SelectCpuKernels(CpuKernels::kBest), x);
  const auto per256 = QuantisedAsFloats<true>(SelectCpuKernels(CpuKernels::kBest), x);
  for (size_t i = 0; i < 1024; ++i) {
    EXPECT_NEAR(per32[i] * per32[1024 + i / 32], x[i], 5.0 / 127 / 2 + 5.0 / 2048);
    EXPECT_NEAR(per256[i] * per256[1024 + i / 256], x[i], 5.0 / 127 / 2 + 1e-4);
  }
}

TEST(SwiGlu, IsNearTheTrueFunction) {
  std::vector<float> x = RandomFloats(8, 1024, 30.0f);
  const std::vector<float> gate = x, up = RandomFloats(5, 1024);
  SelectCpuKernels(CpuKernels::kBest).swiglu(x.data(), up.data(), 1024);
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = gate[i] / (1 + std::exp(-double{gate[i]})) * up[i];
    EXPECT_NEAR(x[i], expected, 1e-6 * std::fabs(expected) + 1e-30);
  }
}

struct AttentionCase {
  uint32_t head_dim;
  uint32_t group;
  uint32_t position;
  uint32_t tokens;
};

// One key/value head in blocks of 32 positions, with garbage (not a number) past the last token.
class AttentionRun {
 public:
  static constexpr uint32_t kBlockTokens = 32;

  explicit AttentionRun(const AttentionCase& shape)
      : shape_(shape),
        length_(shape.position + shape.tokens),
        keys_(RandomFloats(1, size_t{length_} * shape.head_dim)),
        values_(RandomFloats(2, size_t{length_} * shape.head_dim)),
        queries_(RandomFloats(3, size_t{shape.tokens} * shape.group * shape.head_dim, 4.0f)) {
    const size_t half_block = size_t{kBlockTokens} * shape.head_dim;
    for (uint32_t p = 0; p < length_; p += kBlockTokens) {
      blocks_.emplace_back(2 * half_block + 16, uint16_t{0x7E00});
    }
    for (uint32_t p = 0; p < length_; ++p) {
      uint16_t* block = blocks_[p / kBlockTokens].data();
      const uint32_t slot = p % kBlockTokens;
      for (uint32_t c = 0; c < shape.head_dim; ++c) {
        const size_t at = size_t{p} * shape.head_dim + c;
        block[(slot / 16 * shape.head_dim + c) * 16 + slot % 16] = Rounded(keys_[at]);
        block[half_block + slot * shape.head_dim + c] = Rounded(values_[at]);
      }
    }
  }

  std::vector<float> Run(CpuKernels kernels, uint32_t first, uint32_t tokens) const {
    std::vector<const uint8_t*> pointers;
    for (const auto& block : blocks_) {
      pointers.push_back(reinterpret_cast<const uint8_t*>(block.data()));
    }
    const size_t stride = size_t{shape_.group} * shape_.head_dim;
    std::vector<float> output(tokens * stride), scratch(AttentionState::Floats(shape_.head_dim));
    const AttentionArgs args{.blocks = pointers.data(),
                             .block_tokens = kBlockTokens,
                             .keys_offset = 0,
                             .values_offset = size_t{kBlockTokens} * shape_.head_dim * 2,
                             .head_dim = shape_.head_dim,
                             .position = shape_.position + first,
                             .tokens = tokens,
                             .group = shape_.group,
                             .scale = 0.25f,
                             .queries = queries_.data() + first * stride,
                             .output = output.data(),
                             .stride = stride,
                             .scratch = scratch.data()};
    SelectCpuKernels(kernels).attend(args);
    return output;
  }

  std::vector<float> Expected() const {
    std::vector<float> output;
    for (uint32_t t = 0; t < shape_.tokens; ++t) {
      for (uint32_t g = 0; g < shape_.group; ++g) {
        const float* query = &queries_[(size_t{t} * shape_.group + g) * shape_.head_dim];
        const auto row = ExpectedRow(query, shape_.position + t);
        output.insert(output.end(), row.begin(), row.end());
      }
    }
    return output;
  }

 private:
  static uint16_t Rounded(float value) { return FloatToHalf(value); }

  std::vector<float> ExpectedRow(const float* query, uint32_t position) const {
    std::vector<double> sums(shape_.head_dim, 0.0);
    double total = 0;
    for (uint32_t p = 0; p <= position; ++p) {
      double score = 0;
      for (uint32_t c = 0; c < shape_.head_dim; ++c) {
        score += query[c] * HalfToFloat(Rounded(keys_[size_t{p} * shape_.head_dim + c]));
      }
      const double weight = std::exp(0.25 * score);
      total += weight;
      for (uint32_t c = 0; c < shape_.head_dim; ++c) {
        sums[c] += weight * HalfToFloat(Rounded(values_[size_t{p} * shape_.head_dim + c]));
      }
    }
    std::vector<float> row;
    for (const double sum : sums) row.push_back(static_cast<float>(sum / total));
    return row;
  }

  const AttentionCase shape_;
  const uint32_t length_;
  const std::vector<float> keys_, values_, queries_;
  std::vector<std::vector<uint16_t>> blocks_;
};

std::vector<AttentionCase> AttentionCases() {
  std::vector<AttentionCase> cases;
  for (const uint32_t head_dim : {8u, 64u, 80u, 128u}) {
    for (const uint32_t position : {0u, 1u, 15u, 16u, 31u, 70u}) {
      for (const uint32_t tokens : {1u, 5u, 10u}) {
        cases.push_back({head_dim, 3, position, tokens});
      }
    }
  }
  cases.push_back({64, 1, 33, 32});
  cases.push_back({64, 8, 700, 4});
  return cases;
}

TEST(Attention, IsNearTheTrueOne) {
  for (const AttentionCase& shape : AttentionCases()) {
    const AttentionRun run(shape);
    const auto expected = run.Expected();
    const auto actual = run.Run(CpuKernels::kBest, 0, shape.tokens);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 2e-5) << i;
  }
}

TEST(Attention, GivesTheSameBitsWithEveryKernelAndEveryCut) {
  for (const AttentionCase& shape : AttentionCases()) {
    const AttentionRun run(shape);
    const auto expected = run.Run(CpuKernels::kPortable, 0, shape.tokens);
    for (const CpuKernels kernels : SupportedKernels()) {
      EXPECT_TRUE(SameBits(run.Run(kernels, 0, shape.tokens), expected)) << CpuKernelsName(kernels);
      std::vector<float> one_by_one;
      for (uint32_t t = 0; t < shape.tokens; ++t) {
        const auto row = run.Run(kernels, t, 1);
        one_by_one.insert(one_by_one.end(), row.begin(), row.end());
      }
      EXPECT_TRUE(SameBits(one_by_one, expected)) << CpuKernelsName(kernels);
    }
  }
}

TEST(KernelSelection, NamesAreDistinctAndPortableIsEverywhere) {
  EXPECT_TRUE(CpuSupports(CpuKernels::kPortable));
  EXPECT_EQ(CpuKernelsName(CpuKernels::kAvx512), "avx512");
  EXPECT_NE(CpuKernelsName(CpuKernels::kAvx2), CpuKernelsName(CpuKernels::kPortable));
}

}  // namespace
}  // namespace cairn::engine
