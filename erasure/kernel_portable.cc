// The reference kernel, for any processor: all others are tested against it.
#include <cstring>

#include "erasure/field.h"
#include "erasure/kernel.h"

namespace cairn::erasure {

namespace {

constexpr std::array<NibbleProducts, 256> MakeNibbleProducts() {
  std::array<NibbleProducts, 256> tables{};
  for (unsigned factor = 0; factor < 256; ++factor) {
    for (unsigned nibble = 0; nibble < 16; ++nibble) {
      const auto byte = static_cast<uint8_t>(factor);
      tables[factor].low[nibble] = Multiply(byte, static_cast<uint8_t>(nibble));
      tables[factor].high[nibble] = Multiply(byte, static_cast<uint8_t>(nibble << 4));
    }
  }
  return tables;
}

constexpr std::array<uint64_t, 256> MakeBitMatrices() {
  std::array<uint64_t, 256> matrices{};
  for (unsigned factor = 0; factor < 256; ++factor) {
    for (unsigned j = 0; j < 8; ++j) {
      const uint64_t column = Multiply(static_cast<uint8_t>(factor), static_cast<uint8_t>(1u << j));
      for (unsigned i = 0; i < 8; ++i) {
        matrices[factor] |= ((column >> i) & 1) << (8 * (7 - i) + j);
      }
    }
  }
  return matrices;
}

uint64_t LoadWord(const uint8_t* source) {
  uint64_t word;
  std::memcpy(&word, source, sizeof word);
  return word;
}

void StoreWord(uint8_t* target, uint64_t word) { std::memcpy(target, &word, sizeof word); }

// Eight products with 2 at once: shift each byte, and reduce those whose top bit fell out.
uint64_t Doubled(uint64_t word) {
  const uint64_t carries = (word >> 7) & 0x0101010101010101u;
  return ((word & 0x7f7f7f7f7f7f7f7fu) << 1) ^ (carries * (kPolynomial & 0xff));
}

void Sum(const Work& work) {
  uint8_t* const out = work.outputs[0];
  size_t at = work.begin;
  for (; work.end - at >= sizeof(uint64_t); at += sizeof(uint64_t)) {
    uint64_t sum = 0;
    for (size_t i = 0; i < work.source_count; ++i) sum ^= LoadWord(work.sources[i] + at);
    StoreWord(out + at, sum);
  }
  for (; at < work.end; ++at) {
    uint8_t sum = 0;
    for (size_t i = 0; i < work.source_count; ++i) sum ^= work.sources[i][at];
    out[at] = sum;
  }
}

// Horner's rule from the last source down: ((d2 * 2) + d1) * 2 + d0.
void SumAndPowers(const Work& work) {
  uint8_t* const p = work.outputs[0];
  uint8_t* const q = work.outputs[1];
  size_t at = work.begin;
  for (; work.end - at >= sizeof(uint64_t); at += sizeof(uint64_t)) {
    uint64_t sum = 0;
    uint64_t powers = 0;
    for (size_t i = work.source_count; i-- > 0;) {
      const uint64_t word = LoadWord(work.sources[i] + at);
      sum ^= word;
      powers = Doubled(powers) ^ word;
    }
    StoreWord(p + at, sum);
    StoreWord(q + at, powers);
  }
  for (; at < work.end; ++at) {
    uint64_t sum = 0;
    uint64_t powers = 0;
    for (size_t i = work.source_count; i-- > 0;) {
      sum ^= work.sources[i][at];
      powers = Doubled(powers) ^ work.sources[i][at];
    }
    p[at] = static_cast<uint8_t>(sum);
    q[at] = static_cast<uint8_t>(powers);
  }
}

void Dot(const Work& work, const uint8_t* factors) {
  constexpr size_t kPiece = 4096;  // Outputs are read back, so keep them in the nearest cache.
  for (size_t begin = work.begin; begin < work.end; begin += kPiece) {
    const size_t size = work.end - begin < kPiece ? work.end - begin : kPiece;
    for (size_t row = 0; row < work.output_count; ++row) {
      uint8_t* const out = work.outputs[row] + begin;
      std::memset(out, 0, size);
      for (size_t i = 0; i < work.source_count; ++i) {
        const uint8_t* const source = work.sources[i] + begin;
        const NibbleProducts& products = kNibbleProducts[factors[row * work.source_count + i]];
        for (size_t at = 0; at < size; ++at) {
          const unsigned low = products.low[source[at] & 15u];
          const unsigned high = products.high[source[at] >> 4];
          out[at] = static_cast<uint8_t>(out[at] ^ low ^ high);
        }
      }
    }
  }
}

}  // namespace

constexpr std::array<NibbleProducts, 256> kNibbleProducts = MakeNibbleProducts();
constexpr std::array<uint64_t, 256> kBitMatrices = MakeBitMatrices();
constexpr KernelTable kPortableKernel = {Sum, SumAndPowers, Dot};

}  // namespace cairn::erasure
