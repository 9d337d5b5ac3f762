// The codes lose nothing for any m losses (MDS), and their factors never change.
#include "erasure/matrix.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "erasure/field.h"
#include "kvstore/base/random.h"
#include "tests/unit/erasure/slow_field.h"

namespace cairn::erasure {
namespace {

TEST(Field, EqualsLongMultiplication) {
  for (unsigned a = 0; a < 256; ++a) {
    for (unsigned b = 0; b < 256; ++b) {
      const auto x = static_cast<uint8_t>(a);
      const auto y = static_cast<uint8_t>(b);
      ASSERT_EQ(Multiply(x, y), SlowMultiply(x, y)) << a << " * " << b;
    }
    if (a != 0) {
      const auto x = static_cast<uint8_t>(a);
      ASSERT_EQ(SlowMultiply(x, Inverse(x)), 1) << a;
    }
  }
}

std::vector<uint8_t> RowOf(CodeId code, size_t row, size_t columns) {
  std::vector<uint8_t> factors;
  for (size_t j = 0; j < columns; ++j) factors.push_back(Coefficient(code, row, j));
  return factors;
}

TEST(Matrix, FirstRowIsOnes) {
  EXPECT_EQ(RowOf(CodeId::kPQ, 0, 32), std::vector<uint8_t>(32, 1));
  EXPECT_EQ(RowOf(CodeId::kCauchy, 0, 32), std::vector<uint8_t>(32, 1));
}

// Stripes on disk depend on these. Made with Python, from the definitions alone:
//   def mul(a, b):
//     p = 0
//     for i in range(8): p ^= (a << i) * (b >> i & 1)
//     for i in range(14, 7, -1): p ^= (0x11d << (i - 8)) * (p >> i & 1)
//     return p
//   inv = lambda a: next(b for b in range(256) if mul(a, b) == 1)
//   [[mul(32 ^ j, inv((32 + i) ^ j)) for j in range(10)] for i in range(1, 4)]
TEST(Matrix, FactorsNeverChange) {
  EXPECT_EQ(RowOf(CodeId::kPQ, 1, 12),
            (std::vector<uint8_t>{1, 2, 4, 8, 16, 32, 64, 128, 29, 58, 116, 232}));
  EXPECT_EQ(RowOf(CodeId::kCauchy, 1, 10),
            (std::vector<uint8_t>{236, 109, 80, 56, 87, 97, 139, 45, 209, 113}));
  EXPECT_EQ(RowOf(CodeId::kCauchy, 2, 10),
            (std::vector<uint8_t>{115, 163, 217, 198, 89, 8, 193, 173, 63, 149}));
  EXPECT_EQ(RowOf(CodeId::kCauchy, 3, 10),
            (std::vector<uint8_t>{242, 74, 43, 181, 130, 117, 251, 161, 223, 32}));
}

// A systematic code is MDS if and only if every square part of its parity rows is invertible.
void ExpectEverySquarePartInvertible(CodeId code, size_t data_shards, size_t parity_shards) {
  for (unsigned rows = 1; rows < 1u << parity_shards; ++rows) {
    for (unsigned columns = 1; columns < 1u << data_shards; ++columns) {
      if (std::popcount(rows) != std::popcount(columns)) continue;
      std::vector<std::vector<uint8_t>> part;
      for (size_t i = 0; i < parity_shards; ++i) {
        if ((rows >> i & 1) == 0) continue;
        auto& row = part.emplace_back();
        for (size_t j = 0; j < data_shards; ++j) {
          if ((columns >> j & 1) != 0) row.push_back(Coefficient(code, i, j));
        }
      }
      ASSERT_TRUE(HasNonzeroDeterminant(part)) << "rows " << rows << " columns " << columns;
    }
  }
}

TEST(Matrix, CauchyIsMdsForSmallShapes) {
  ExpectEverySquarePartInvertible(CodeId::kCauchy, 10, 4);
  ExpectEverySquarePartInvertible(CodeId::kCauchy, 6, 6);
  ExpectEverySquarePartInvertible(CodeId::kCauchy, 14, 3);
}

TEST(Matrix, PQIsMdsForEveryWidth) {
  for (size_t i = 0; i < kDataShardsMax; ++i) {
    EXPECT_NE(Coefficient(CodeId::kPQ, 1, i), 0);
    for (size_t j = 0; j < i; ++j) {  // The determinant of columns i and j.
      EXPECT_NE(Coefficient(CodeId::kPQ, 1, i), Coefficient(CodeId::kPQ, 1, j));
    }
  }
}

// Wanted rows times the generator must give the wanted rows of the generator itself.
TEST(Matrix, PlanDecodeIsExactForRandomLossesUpTo32Plus8) {
  kv::Random random(5);
  for (int round = 0; round < 3000; ++round) {
    const size_t m = 1 + random.Below(kParityShardsMax);
    const size_t k = 1 + random.Below(kDataShardsMax);
    const Shape shape{.data_shards = static_cast<uint8_t>(k),
                      .parity_shards = static_cast<uint8_t>(m),
                      .code = PreferredCode(m)};
    uint64_t lost = 0;
    while (static_cast<size_t>(std::popcount(lost)) < m) lost |= 1ull << random.Below(k + m);
    std::vector<uint8_t> sources;
    std::vector<uint8_t> wanted;
    for (size_t i = 0; i < k + m; ++i) {
      ((lost >> i & 1) != 0 ? wanted : sources).push_back(static_cast<uint8_t>(i));
    }
    Factors factors;
    PlanDecode(shape, sources, wanted, factors);
    const auto generator = [&](size_t shard, size_t column) -> uint8_t {
      if (shard < k) return shard == column;
      return Coefficient(shape.code, shard - k, column);
    };
    for (size_t r = 0; r < wanted.size(); ++r) {
      for (size_t column = 0; column < k; ++column) {
        uint8_t sum = 0;
        for (size_t i = 0; i < k; ++i) {
          sum ^= SlowMultiply(factors[r * k + i], generator(sources[i], column));
        }
        ASSERT_EQ(sum, generator(wanted[r], column)) << k << "+" << m << " lost " << lost;
      }
    }
  }
}

TEST(Matrix, OneLostDataShardIsThePlainSumOfTheRestAndP) {
  for (const size_t m : {1u, 2u, 4u}) {
    const Shape shape{.data_shards = 10, .parity_shards = static_cast<uint8_t>(m),
                      .code = PreferredCode(m)};
    for (uint8_t lost = 0; lost < 10; ++lost) {
      std::vector<uint8_t> sources;
      for (uint8_t i = 0; i <= 10; ++i) {
        if (i != lost) sources.push_back(i);
      }
      Factors factors;
      PlanDecode(shape, sources, {&lost, 1}, factors);
      for (size_t i = 0; i < 10; ++i) EXPECT_EQ(factors[i], 1);
    }
  }
}

}  // namespace
}  // namespace cairn::erasure
