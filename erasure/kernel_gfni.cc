// The kernel for x86 with AVX-512 and GFNI: a product with any factor is one instruction.
#if defined(__x86_64__)
#include <immintrin.h>

#include "erasure/field.h"
#include "erasure/kernel.h"
#include "erasure/kernel_walk.h"

namespace cairn::erasure {

namespace {

constexpr size_t kVectorBytes = 64;
constexpr __mmask64 kAll = ~__mmask64{0};

// How one vector is reached: kMasked touches only the bytes of the mask.
enum class Access : uint8_t { kPlain, kStreaming, kMasked };

template <Access kAccess>
__m512i Get(const uint8_t* source, __mmask64 mask) {
  if constexpr (kAccess == Access::kMasked) return _mm512_maskz_loadu_epi8(mask, source);
  return _mm512_loadu_si512(source);
}

template <Access kAccess>
void Put(uint8_t* target, __m512i value, __mmask64 mask) {
  if constexpr (kAccess == Access::kMasked) {
    _mm512_mask_storeu_epi8(target, mask, value);
  } else if constexpr (kAccess == Access::kStreaming) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(target), value);
  } else {
    _mm512_storeu_si512(target, value);
  }
}

__m512i Matrix(uint8_t factor) {
  return _mm512_set1_epi64(static_cast<long long>(kBitMatrices[factor]));
}

__m512i Product(__m512i value, __m512i matrix) {
  return _mm512_gf2p8affine_epi64_epi8(value, matrix, 0);
}

// One instruction for two sums: why the loops below take sources in pairs.
__m512i Sum3(__m512i a, __m512i b, __m512i c) {
  constexpr int kOddNumberOfOnes = 0x96;
  return _mm512_ternarylogic_epi64(a, b, c, kOddNumberOfOnes);
}

template <typename Derived, size_t kVectors>
struct Operation {
  static constexpr size_t kWidth = kVectorBytes;
  static constexpr size_t kBlock = kVectors * kVectorBytes;
  template <Store kStore>
  void Block(size_t at) const {
    constexpr Access kAccess =
        kStore == Store::kStreaming ? Access::kStreaming : Access::kPlain;
    static_cast<const Derived*>(this)->template Run<kVectors, kAccess>(at, kAll);
  }
  void Vector(size_t at) const {
    static_cast<const Derived*>(this)->template Run<1, Access::kPlain>(at, kAll);
  }
  void Edge(size_t at, size_t count) const {
    static_cast<const Derived*>(this)->template Run<1, Access::kMasked>(at, kAll >> (64 - count));
  }
  static void Fence() { _mm_sfence(); }
};

struct SumOperation : Operation<SumOperation, 4> {
  explicit SumOperation(const Work& w) : work(w) {}
  template <size_t kVectors, Access kAccess>
  void Run(size_t at, __mmask64 mask) const {
    __m512i sum[kVectors];
    for (size_t v = 0; v < kVectors; ++v) {
      sum[v] = Get<kAccess>(work.sources[0] + at + v * kVectorBytes, mask);
    }
    size_t i = 1;
    for (; i + 1 < work.source_count; i += 2) {
      const uint8_t* const first = work.sources[i] + at;
      const uint8_t* const second = work.sources[i + 1] + at;
      for (size_t v = 0; v < kVectors; ++v) {
        sum[v] = Sum3(sum[v], Get<kAccess>(first + v * kVectorBytes, mask),
                      Get<kAccess>(second + v * kVectorBytes, mask));
      }
    }
    for (size_t v = 0; i < work.source_count && v < kVectors; ++v) {
      const uint8_t* const last = work.sources[i] + at + v * kVectorBytes;
      sum[v] = _mm512_xor_si512(sum[v], Get<kAccess>(last, mask));
    }
    for (size_t v = 0; v < kVectors; ++v) {
      Put<kAccess>(work.outputs[0] + at + v * kVectorBytes, sum[v], mask);
    }
  }
  const Work& work;
};

// Horner's rule from the last source down, two steps at a time: powers * 4 + high * 2 + low.
struct PowersOperation : Operation<PowersOperation, 4> {
  explicit PowersOperation(const Work& w) : work(w), two(Matrix(2)), four(Matrix(4)) {}
  template <size_t kVectors, Access kAccess>
  void Run(size_t at, __mmask64 mask) const {
    __m512i sum[kVectors];
    __m512i powers[kVectors];
    const bool odd = work.source_count % 2 != 0;
    const uint8_t* const last = work.sources[work.source_count - 1] + at;
    for (size_t v = 0; v < kVectors; ++v) {
      sum[v] = odd ? Get<kAccess>(last + v * kVectorBytes, mask) : _mm512_setzero_si512();
      powers[v] = sum[v];
    }
    for (size_t i = work.source_count - (odd ? 1 : 0); i > 0; i -= 2) {
      const uint8_t* const high = work.sources[i - 1] + at;
      const uint8_t* const low = work.sources[i - 2] + at;
      for (size_t v = 0; v < kVectors; ++v) {
        const __m512i x = Get<kAccess>(high + v * kVectorBytes, mask);
        const __m512i y = Get<kAccess>(low + v * kVectorBytes, mask);
        sum[v] = Sum3(sum[v], x, y);
        powers[v] = Sum3(Product(powers[v], four), Product(x, two), y);
      }
    }
    for (size_t v = 0; v < kVectors; ++v) {
      Put<kAccess>(work.outputs[0] + at + v * kVectorBytes, sum[v], mask);
      Put<kAccess>(work.outputs[1] + at + v * kVectorBytes, powers[v], mask);
    }
  }
  const Work& work;
  const __m512i two;
  const __m512i four;
};

template <size_t kRows>
struct DotOperation : Operation<DotOperation<kRows>, kRows <= 4 ? 4 : 2> {
  DotOperation(const Work& w, const uint8_t* f) : work(w), factors(f) {}
  template <size_t kVectors, Access kAccess>
  void Run(size_t at, __mmask64 mask) const {
    __m512i sums[kRows][kVectors];
    for (auto& row : sums) {
      for (auto& sum : row) sum = _mm512_setzero_si512();
    }
    // The partner of a lone last source is itself with the factor 0.
    for (size_t i = 0; i < work.source_count; i += 2) {
      const bool paired = i + 1 < work.source_count;
      const uint8_t* const first = work.sources[i] + at;
      const uint8_t* const second = work.sources[paired ? i + 1 : i] + at;
      __m512i x[kVectors];
      __m512i y[kVectors];
      for (size_t v = 0; v < kVectors; ++v) {
        x[v] = Get<kAccess>(first + v * kVectorBytes, mask);
        y[v] = Get<kAccess>(second + v * kVectorBytes, mask);
      }
      for (size_t row = 0; row < kRows; ++row) {
        const uint8_t* const pair = factors + row * work.source_count + i;
        const __m512i by_first = Matrix(pair[0]);
        const __m512i by_second = Matrix(paired ? pair[1] : uint8_t{0});
        for (size_t v = 0; v < kVectors; ++v) {
          sums[row][v] = Sum3(sums[row][v], Product(x[v], by_first), Product(y[v], by_second));
        }
      }
    }
    for (size_t row = 0; row < kRows; ++row) {
      for (size_t v = 0; v < kVectors; ++v) {
        Put<kAccess>(work.outputs[row] + at + v * kVectorBytes, sums[row][v], mask);
      }
    }
  }
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

constexpr KernelTable kGfniKernel = {Sum, SumAndPowers, Dot};

}  // namespace cairn::erasure
#endif  // __x86_64__
