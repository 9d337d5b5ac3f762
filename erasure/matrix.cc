// Generator coefficients, and decoding by solving only for the lost data shards.
#include "erasure/matrix.h"

#include <utility>

#include "erasure/check.h"
#include "erasure/field.h"

namespace cairn::erasure {

namespace {

// At most m data shards can be lost and decodable, so the system to solve is at most 8 x 8.
using Row = std::array<uint8_t, kParityShardsMax>;  // Zero beyond the size.
using Square = std::array<Row, kParityShardsMax>;

void Scale(Row& row, uint8_t factor) {
  for (uint8_t& value : row) value = Multiply(value, factor);
}

void AddScaled(Row& target, const Row& source, uint8_t factor) {
  for (size_t i = 0; i < target.size(); ++i) target[i] ^= Multiply(factor, source[i]);
}

// Gauss-Jordan. The matrices of the codes are invertible whatever was lost.
Square Inverted(Square matrix, size_t size) {
  Square inverse{};
  for (size_t i = 0; i < inverse.size(); ++i) inverse[i][i] = 1;
  for (size_t column = 0; column < size; ++column) {
    size_t pivot = column;
    while (pivot < size && matrix[pivot][column] == 0) ++pivot;
    ERASURE_CHECK(pivot < size);
    std::swap(matrix[pivot], matrix[column]);
    std::swap(inverse[pivot], inverse[column]);
    const uint8_t scale = Inverse(matrix[column][column]);
    Scale(matrix[column], scale);
    Scale(inverse[column], scale);
    for (size_t row = 0; row < size; ++row) {
      const uint8_t factor = matrix[row][column];
      if (row == column || factor == 0) continue;
      AddScaled(matrix[row], matrix[column], factor);
      AddScaled(inverse[row], inverse[column], factor);
    }
  }
  return inverse;
}

// The data shards that are no source, in order.
size_t FindLost(size_t data_shards, std::span<const uint8_t> sources,
                std::array<uint8_t, kDataShardsMax>& lost) {
  std::array<bool, kDataShardsMax> present{};
  for (const uint8_t source : sources) {
    if (source < data_shards) present[source] = true;
  }
  size_t count = 0;
  for (size_t i = 0; i < data_shards; ++i) {
    if (!present[i]) lost[count++] = static_cast<uint8_t>(i);
  }
  return count;
}

}  // namespace

uint8_t Coefficient(CodeId code, size_t row, size_t column) {
  if (row == 0) return 1;
  if (code == CodeId::kPQ) return PowerOfTwo(column);
  const auto x_first = static_cast<uint8_t>(kDataShardsMax);
  const auto x = static_cast<uint8_t>(kDataShardsMax + row);
  const auto y = static_cast<uint8_t>(column);
  return Multiply(x_first ^ y, Inverse(x ^ y));
}

void PlanDecode(const Shape& shape, std::span<const uint8_t> sources,
                std::span<const uint8_t> wanted, Factors& factors) {
  const size_t k = shape.data_shards;
  ERASURE_CHECK(sources.size() == k);
  std::array<uint8_t, kDataShardsMax> lost{};
  const size_t lost_count = FindLost(k, sources, lost);
  const size_t known_count = k - lost_count;  // sources[known_count..] are parity shards.
  const auto parity_row = [&](size_t equation) { return sources[known_count + equation] - k; };

  // Parity row = known part + lost part, so lost = inverse * (parity + known part).
  Square lost_part{};
  for (size_t e = 0; e < lost_count; ++e) {
    for (size_t l = 0; l < lost_count; ++l) {
      lost_part[e][l] = Coefficient(shape.code, parity_row(e), lost[l]);
    }
  }
  const Square inverse = Inverted(lost_part, lost_count);
  std::array<std::array<uint8_t, kDataShardsMax>, kParityShardsMax> lost_rows{};
  for (size_t l = 0; l < lost_count; ++l) {
    for (size_t e = 0; e < lost_count; ++e) {
      lost_rows[l][known_count + e] = inverse[l][e];
      for (size_t i = 0; i < known_count; ++i) {
        const uint8_t known = Coefficient(shape.code, parity_row(e), sources[i]);
        lost_rows[l][i] ^= Multiply(inverse[l][e], known);
      }
    }
  }

  for (size_t r = 0; r < wanted.size(); ++r) {
    const std::span<uint8_t> row(factors.data() + r * k, k);
    const size_t index = wanted[r];
    for (size_t i = 0; i < k; ++i) {
      row[i] = index >= k && i < known_count ? Coefficient(shape.code, index - k, sources[i]) : 0;
    }
    for (size_t l = 0; l < lost_count; ++l) {  // A lost data shard itself, or its part in a parity.
      const bool itself = lost[l] == index;
      if (index < k && !itself) continue;
      const uint8_t weight = itself ? uint8_t{1} : Coefficient(shape.code, index - k, lost[l]);
      for (size_t i = 0; i < k; ++i) row[i] ^= Multiply(weight, lost_rows[l][i]);
    }
  }
}

}  // namespace cairn::erasure
