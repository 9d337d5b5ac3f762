// Products in GF(2^8) by long multiplication: an oracle that shares nothing with erasure/field.h.
#pragma once

#include <cstdint>
#include <vector>

namespace cairn::erasure {

inline uint8_t SlowMultiply(uint8_t a, uint8_t b) {
  unsigned product = 0;
  for (unsigned bit = 0; bit < 8; ++bit) {
    if ((b >> bit & 1) != 0) product ^= static_cast<unsigned>(a) << bit;
  }
  for (unsigned bit = 15; bit >= 8; --bit) {
    if ((product >> bit & 1) != 0) product ^= 0x11du << (bit - 8);
  }
  return static_cast<uint8_t>(product);
}

// Whether a square matrix is invertible, by expansion along its rows.
inline bool HasNonzeroDeterminant(const std::vector<std::vector<uint8_t>>& matrix) {
  struct Expansion {
    const std::vector<std::vector<uint8_t>>& matrix;
    uint8_t Minor(size_t row, unsigned used_columns) const {
      if (row == matrix.size()) return 1;
      uint8_t sum = 0;
      for (size_t column = 0; column < matrix.size(); ++column) {
        if ((used_columns >> column & 1) != 0 || matrix[row][column] == 0) continue;
        sum ^= SlowMultiply(matrix[row][column], Minor(row + 1, used_columns | 1u << column));
      }
      return sum;
    }
  };
  return Expansion{matrix}.Minor(0, 0) != 0;
}

}  // namespace cairn::erasure
