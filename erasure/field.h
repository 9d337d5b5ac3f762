// Arithmetic of GF(2^8) with the polynomial 0x11d, and the tables that the kernels multiply with.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cairn::erasure {

// x^8 + x^4 + x^3 + x^2 + 1, as in RAID-6 and ISA-L. 2 generates all other elements.
inline constexpr unsigned kPolynomial = 0x11d;

struct FieldTables {
  std::array<uint8_t, 510> power{};  // power[i] = 2^i; twice round, so that two logs may be added.
  std::array<uint8_t, 256> log{};    // log[power[i]] = i for i < 255; log[0] means nothing.
};

constexpr FieldTables MakeFieldTables() {
  FieldTables tables;
  unsigned value = 1;
  for (size_t i = 0; i < 255; ++i) {
    tables.power[i] = static_cast<uint8_t>(value);
    tables.power[i + 255] = static_cast<uint8_t>(value);
    tables.log[value] = static_cast<uint8_t>(i);
    value <<= 1;
    if (value > 255) value ^= kPolynomial;
  }
  return tables;
}

inline constexpr FieldTables kField = MakeFieldTables();

constexpr uint8_t PowerOfTwo(size_t exponent) { return kField.power[exponent % 255]; }

constexpr uint8_t Multiply(uint8_t a, uint8_t b) {
  if (a == 0 || b == 0) return 0;
  return kField.power[static_cast<size_t>(kField.log[a]) + kField.log[b]];
}

// `a` is not zero.
constexpr uint8_t Inverse(uint8_t a) { return kField.power[255u - kField.log[a]]; }

// For byte shuffles: products of a factor with every low nibble, then with every high nibble.
struct alignas(32) NibbleProducts {
  std::array<uint8_t, 16> low;
  std::array<uint8_t, 16> high;
};
extern const std::array<NibbleProducts, 256> kNibbleProducts;

// For vgf2p8affineqb: multiplying by the factor as an 8 x 8 bit matrix. Byte 7 - i makes bit i of
// the result, and bit j of that byte says whether bit j of the operand takes part.
extern const std::array<uint64_t, 256> kBitMatrices;

}  // namespace cairn::erasure
