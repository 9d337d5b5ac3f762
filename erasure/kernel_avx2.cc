// The kernel for x86 with AVX2: P/Q by doubling, other factors by byte shuffles.
#if defined(__x86_64__)
#include <immintrin.h>

#include "erasure/field.h"
#include "erasure/kernel.h"
#include "erasure/kernel_walk.h"

namespace cairn::erasure {

namespace {

constexpr size_t kVectorBytes = 32;

__m256i Load(const uint8_t* source) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
}

template <Store kStore>
void Put(uint8_t* target, __m256i value) {
  if constexpr (kStore == Store::kStreaming) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(target), value);
  } else {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(target), value);
  }
}

Work Piece(const Work& work, size_t at, size_t count) {
  Work piece = work;
  piece.begin = at;
  piece.end = at + count;
  return piece;
}

// Shared by the operations: their sizes, and whole blocks out of kVectors vectors.
template <typename Derived, size_t kVectors>
struct Operation {
  static constexpr size_t kWidth = kVectorBytes;
  static constexpr size_t kBlock = kVectors * kVectorBytes;
  template <Store kStore>
  void Block(size_t at) const {
    static_cast<const Derived*>(this)->template Run<kVectors, kStore>(at);
  }
  void Vector(size_t at) const {
    static_cast<const Derived*>(this)->template Run<1, Store::kCached>(at);
  }
  static void Fence() { _mm_sfence(); }
};

struct SumOperation : Operation<SumOperation, 8> {
  explicit SumOperation(const Work& w) : work(w) {}
  template <size_t kVectors, Store kStore>
  void Run(size_t at) const {
    __m256i sum[kVectors];
    for (size_t v = 0; v < kVectors; ++v) sum[v] = Load(work.sources[0] + at + v * kVectorBytes);
    for (size_t i = 1; i < work.source_count; ++i) {
      const uint8_t* const source = work.sources[i] + at;
      for (size_t v = 0; v < kVectors; ++v) {
        sum[v] = _mm256_xor_si256(sum[v], Load(source + v * kVectorBytes));
      }
    }
    for (size_t v = 0; v < kVectors; ++v) {
      Put<kStore>(work.outputs[0] + at + v * kVectorBytes, sum[v]);
    }
  }
  void Edge(size_t at, size_t count) const { kPortableKernel.sum(Piece(work, at, count)); }
  const Work& work;
};

// Adding a byte to itself shifts it; the sign says whether the polynomial must be taken off.
__m256i Doubled(__m256i value) {
  const __m256i carries = _mm256_cmpgt_epi8(_mm256_setzero_si256(), value);
  const __m256i reduce = _mm256_and_si256(carries, _mm256_set1_epi8(kPolynomial & 0xff));
  return _mm256_xor_si256(_mm256_add_epi8(value, value), reduce);
}

struct PowersOperation : Operation<PowersOperation, 4> {
  explicit PowersOperation(const Work& w) : work(w) {}
  template <size_t kVectors, Store kStore>
  void Run(size_t at) const {
    __m256i sum[kVectors];
    __m256i powers[kVectors];
    const uint8_t* const last = work.sources[work.source_count - 1] + at;
    for (size_t v = 0; v < kVectors; ++v) sum[v] = powers[v] = Load(last + v * kVectorBytes);
    for (size_t i = work.source_count - 1; i-- > 0;) {
      const uint8_t* const source = work.sources[i] + at;
      for (size_t v = 0; v < kVectors; ++v) {
        const __m256i value = Load(source + v * kVectorBytes);
        sum[v] = _mm256_xor_si256(sum[v], value);
        powers[v] = _mm256_xor_si256(Doubled(powers[v]), value);
      }
    }
    for (size_t v = 0; v < kVectors; ++v) {
      Put<kStore>(work.outputs[0] + at + v * kVectorBytes, sum[v]);
      Put<kStore>(work.outputs[1] + at + v * kVectorBytes, powers[v]);
    }
  }
  void Edge(size_t at, size_t count) const {
    kPortableKernel.sum_and_powers(Piece(work, at, count));
  }
  const Work& work;
};

__m256i Products(const std::array<uint8_t, 16>& table, __m256i nibbles) {
  const __m128i half = _mm_load_si128(reinterpret_cast<const __m128i*>(table.data()));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(half), nibbles);
}

template <size_t kRows>
struct DotOperation : Operation<DotOperation<kRows>, kRows <= 4 ? 2 : 1> {
  DotOperation(const Work& w, const uint8_t* f) : work(w), factors(f) {}
  template <size_t kVectors, Store kStore>
  void Run(size_t at) const {
    const __m256i nibble_mask = _mm256_set1_epi8(15);
    __m256i sums[kRows][kVectors];
    for (auto& row : sums) {
      for (auto& sum : row) sum = _mm256_setzero_si256();
    }
    for (size_t i = 0; i < work.source_count; ++i) {
      __m256i low[kVectors];
      __m256i high[kVectors];
      for (size_t v = 0; v < kVectors; ++v) {
        const __m256i value = Load(work.sources[i] + at + v * kVectorBytes);
        low[v] = _mm256_and_si256(value, nibble_mask);
        high[v] = _mm256_and_si256(_mm256_srli_epi16(value, 4), nibble_mask);
      }
      for (size_t row = 0; row < kRows; ++row) {
        const NibbleProducts& products = kNibbleProducts[factors[row * work.source_count + i]];
        for (size_t v = 0; v < kVectors; ++v) {
          const __m256i product = _mm256_xor_si256(Products(products.low, low[v]),
                                                   Products(products.high, high[v]));
          sums[row][v] = _mm256_xor_si256(sums[row][v], product);
        }
      }
    }
    for (size_t row = 0; row < kRows; ++row) {
      for (size_t v = 0; v < kVectors; ++v) {
        Put<kStore>(work.outputs[row] + at + v * kVectorBytes, sums[row][v]);
      }
    }
  }
  void Edge(size_t at, size_t count) const { kPortableKernel.dot(Piece(work, at, count), factors); }
  const Work& work;
  const uint8_t* const factors;
};

template <size_t kRows>
void DotRows(const Work& work, const uint8_t* factors) {
  Walk(work, DotOperation<kRows>(work, factors));
}

void Sum(const Work& work) { Walk(work, SumOperation(work)); }

void SumAndPowers(const Work& work) { Walk(work, PowersOperation(work)); }

void Dot(const Work& work, const uint8_t* factors) {
  constexpr void (*kByRows[])(const Work&, const uint8_t*) = {
      DotRows<1>, DotRows<2>, DotRows<3>, DotRows<4>,
      DotRows<5>, DotRows<6>, DotRows<7>, DotRows<8>};
  kByRows[work.output_count - 1](work, factors);
}

}  // namespace

constexpr KernelTable kAvx2Kernel = {Sum, SumAndPowers, Dot};

}  // namespace cairn::erasure
#endif  // __x86_64__
