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
    for (size_t i = 1; i < work.source_count; ++i) {
      const uint8_t* const source = work.sources[i] + at;
      for (size_t v = 0; v < kVectors; ++v) {
        sum[v] = _mm512_xor_si512(sum[v], Get<kAccess>(source + v * kVectorBytes, mask));
      }
    }
    for (size_t v = 0; v < kVectors; ++v) {
      Put<kAccess>(work.outputs[0] + at + v * kVectorBytes, sum[v], mask);
    }
  }
  const Work& work;
};

struct PowersOperation : Operation<PowersOperation, 4> {
  explicit PowersOperation(const Work& w) : work(w), two(Matrix(2)) {}
  template <size_t kVectors, Access kAccess>
  void Run(size_t at, __mmask64 mask) const {
    __m512i sum[kVectors];
    __m512i powers[kVectors];
    const uint8_t* const last = work.sources[work.source_count - 1] + at;
    for (size_t v = 0; v < kVectors; ++v) {
      sum[v] = powers[v] = Get<kAccess>(last + v * kVectorBytes, mask);
    }
    for (size_t i = work.source_count - 1; i-- > 0;) {
      const uint8_t* const source = work.sources[i] + at;
      for (size_t v = 0; v < kVectors; ++v) {
        const __m512i value = Get<kAccess>(source + v * kVectorBytes, mask);
        sum[v] = _mm512_xor_si512(sum[v], value);
        powers[v] = _mm512_xor_si512(_mm512_gf2p8affine_epi64_epi8(powers[v], two, 0), value);
      }
    }
    for (size_t v = 0; v < kVectors; ++v) {
      Put<kAccess>(work.outputs[0] + at + v * kVectorBytes, sum[v], mask);
      Put<kAccess>(work.outputs[1] + at + v * kVectorBytes, powers[v], mask);
    }
  }
  const Work& work;
  const __m512i two;
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
    for (size_t i = 0; i < work.source_count; ++i) {
      __m512i values[kVectors];
      for (size_t v = 0; v < kVectors; ++v) {
        values[v] = Get<kAccess>(work.sources[i] + at + v * kVectorBytes, mask);
      }
      for (size_t row = 0; row < kRows; ++row) {
        const __m512i matrix = Matrix(factors[row * work.source_count + i]);
        for (size_t v = 0; v < kVectors; ++v) {
          sums[row][v] = _mm512_xor_si512(
              sums[row][v], _mm512_gf2p8affine_epi64_epi8(values[v], matrix, 0));
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
