// The kernel for 64-bit ARM: P/Q by doubling, other factors by table look-ups in registers.
#if defined(__aarch64__)
#include <arm_neon.h>

#include "erasure/field.h"
#include "erasure/kernel.h"
#include "erasure/kernel_walk.h"

namespace cairn::erasure {

namespace {

constexpr size_t kVectorBytes = 16;

Work Piece(const Work& work, size_t at, size_t count) {
  Work piece = work;
  piece.begin = at;
  piece.end = at + count;
  return piece;
}

// NEON has no store past the caches that pays here: both kinds of store are the same.
template <typename Derived, size_t kVectors>
struct Operation {
  static constexpr size_t kWidth = kVectorBytes;
  static constexpr size_t kBlock = kVectors * kVectorBytes;
  template <Store kStore>
  void Block(size_t at) const {
    static_cast<const Derived*>(this)->template Run<kVectors>(at);
  }
  void Vector(size_t at) const { static_cast<const Derived*>(this)->template Run<1>(at); }
  static void Fence() {}
};

struct SumOperation : Operation<SumOperation, 4> {
  explicit SumOperation(const Work& w) : work(w) {}
  template <size_t kVectors>
  void Run(size_t at) const {
    uint8x16_t sum[kVectors];
    for (size_t v = 0; v < kVectors; ++v) sum[v] = vld1q_u8(work.sources[0] + at + v * 16);
    for (size_t i = 1; i < work.source_count; ++i) {
      const uint8_t* const source = work.sources[i] + at;
      for (size_t v = 0; v < kVectors; ++v) sum[v] = veorq_u8(sum[v], vld1q_u8(source + v * 16));
    }
    for (size_t v = 0; v < kVectors; ++v) vst1q_u8(work.outputs[0] + at + v * 16, sum[v]);
  }
  void Edge(size_t at, size_t count) const { kPortableKernel.sum(Piece(work, at, count)); }
  const Work& work;
};

// The sign, spread over the byte, says whether the polynomial must be taken off.
uint8x16_t Doubled(uint8x16_t value) {
  const uint8x16_t carries = vreinterpretq_u8_s8(vshrq_n_s8(vreinterpretq_s8_u8(value), 7));
  return veorq_u8(vshlq_n_u8(value, 1), vandq_u8(carries, vdupq_n_u8(kPolynomial & 0xff)));
}

struct PowersOperation : Operation<PowersOperation, 4> {
  explicit PowersOperation(const Work& w) : work(w) {}
  template <size_t kVectors>
  void Run(size_t at) const {
    uint8x16_t sum[kVectors];
    uint8x16_t powers[kVectors];
    const uint8_t* const last = work.sources[work.source_count - 1] + at;
    for (size_t v = 0; v < kVectors; ++v) sum[v] = powers[v] = vld1q_u8(last + v * 16);
    for (size_t i = work.source_count - 1; i-- > 0;) {
      const uint8_t* const source = work.sources[i] + at;
      for (size_t v = 0; v < kVectors; ++v) {
        const uint8x16_t value = vld1q_u8(source + v * 16);
        sum[v] = veorq_u8(sum[v], value);
        powers[v] = veorq_u8(Doubled(powers[v]), value);
      }
    }
    for (size_t v = 0; v < kVectors; ++v) {
      vst1q_u8(work.outputs[0] + at + v * 16, sum[v]);
      vst1q_u8(work.outputs[1] + at + v * 16, powers[v]);
    }
  }
  void Edge(size_t at, size_t count) const {
    kPortableKernel.sum_and_powers(Piece(work, at, count));
  }
  const Work& work;
};

template <size_t kRows>
struct DotOperation : Operation<DotOperation<kRows>, kRows <= 4 ? 2 : 1> {
  DotOperation(const Work& w, const uint8_t* f) : work(w), factors(f) {}
  template <size_t kVectors>
  void Run(size_t at) const {
    uint8x16_t sums[kRows][kVectors];
    for (auto& row : sums) {
      for (auto& sum : row) sum = vdupq_n_u8(0);
    }
    for (size_t i = 0; i < work.source_count; ++i) {
      uint8x16_t values[kVectors];
      for (size_t v = 0; v < kVectors; ++v) values[v] = vld1q_u8(work.sources[i] + at + v * 16);
      for (size_t row = 0; row < kRows; ++row) {
        const NibbleProducts& products = kNibbleProducts[factors[row * work.source_count + i]];
        const uint8x16_t low = vld1q_u8(products.low.data());
        const uint8x16_t high = vld1q_u8(products.high.data());
        for (size_t v = 0; v < kVectors; ++v) {
          const uint8x16_t by_low = vqtbl1q_u8(low, vandq_u8(values[v], vdupq_n_u8(15)));
          const uint8x16_t by_high = vqtbl1q_u8(high, vshrq_n_u8(values[v], 4));
          sums[row][v] = veorq_u8(sums[row][v], veorq_u8(by_low, by_high));
        }
      }
    }
    for (size_t row = 0; row < kRows; ++row) {
      for (size_t v = 0; v < kVectors; ++v) vst1q_u8(work.outputs[row] + at + v * 16, sums[row][v]);
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

constexpr KernelTable kNeonKernel = {Sum, SumAndPowers, Dot};

}  // namespace cairn::erasure
#endif  // __aarch64__
