// Sixteen lanes as two 256-bit registers (AVX2, FMA, F16C). See lanes_portable.h.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace cairn::engine {

struct Avx2Lanes {
  static constexpr int kTokenTile = 2;
  struct Float {
    __m256 low, high;
  };
  struct Int {
    __m256i low, high;
  };
  struct Codes {
    __m256i low, high;
  };

  static Float Broadcast(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
  static Float Load(const float* source) {
    return {_mm256_loadu_ps(source), _mm256_loadu_ps(source + 8)};
  }
  static void Store(float* target, Float a) {
    _mm256_storeu_ps(target, a.low);
    _mm256_storeu_ps(target + 8, a.high);
  }
  static Float LoadHalf(const uint16_t* source) {
    return {_mm256_cvtph_ps(Load128(source)), _mm256_cvtph_ps(Load128(source + 8))};
  }
  static void StoreHalf(uint16_t* target, Float a) {
    Store128(target, _mm256_cvtps_ph(a.low, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    Store128(target + 8, _mm256_cvtps_ph(a.high, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }

  static Float Add(Float a, Float b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  static Float Sub(Float a, Float b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
  }
  static Float Mul(Float a, Float b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  static Float Div(Float a, Float b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
  }
  static Float Fma(Float a, Float b, Float c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static Float Max(Float a, Float b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
  }
  static Float Min(Float a, Float b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
  }
  static Float Abs(Float a) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, a.high)};
  }
  static Float IfLess(Float a, Float b, Float x, Float y) {
    return {_mm256_blendv_ps(y.low, x.low, _mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ)),
            _mm256_blendv_ps(y.high, x.high, _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ))};
  }
  static Float FirstLanes(int count, Float a, Float b) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i low = _mm256_cmpgt_epi32(_mm256_set1_epi32(count), lane);
    const __m256i high = _mm256_cmpgt_epi32(_mm256_set1_epi32(count - 8), lane);
    return {_mm256_blendv_ps(b.low, a.low, _mm256_castsi256_ps(low)),
            _mm256_blendv_ps(b.high, a.high, _mm256_castsi256_ps(high))};
  }
  static float ReduceAdd(Float a) {
    const __m256 eight = _mm256_add_ps(a.low, a.high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float ReduceMax(Float a) {
    const __m256 eight = _mm256_max_ps(a.low, a.high);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

  static Int BroadcastInt(int32_t value) {
    return {_mm256_set1_epi32(value), _mm256_set1_epi32(value)};
  }
  static Int AddInt(Int a, Int b) {
    return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
  }
  static Int MulInt(Int a, Int b) {
    return {_mm256_mullo_epi32(a.low, b.low), _mm256_mullo_epi32(a.high, b.high)};
  }
  static int32_t ReduceAddInt(Int a) {
    const __m256i eight = _mm256_add_epi32(a.low, a.high);
    const __m128i four =
        _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xB1)));
  }
  static Float ToFloat(Int a) { return {_mm256_cvtepi32_ps(a.low), _mm256_cvtepi32_ps(a.high)}; }
  // Relies on the default rounding mode, which nothing in this project changes.
  static Int Round(Float a) { return {_mm256_cvtps_epi32(a.low), _mm256_cvtps_epi32(a.high)}; }
  static Float PowerOfTwo(Int n) {
    const Int biased = AddInt(n, BroadcastInt(127));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(biased.low, 23)),
            _mm256_castsi256_ps(_mm256_slli_epi32(biased.high, 23))};
  }
  static Int LoadSigned8(const uint8_t* source) {
    const __m128i bytes = Load128(source);
    return {_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8))};
  }
  static Int LoadUnsigned8(const uint8_t* source) {
    const __m128i bytes = Load128(source);
    return {_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))};
  }
  static void StoreSigned8(int8_t* target, Int a) {
    const __m256i pairs = _mm256_permute4x64_epi64(_mm256_packs_epi32(a.low, a.high), 0xD8);
    Store128(target,
             _mm_packs_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1)));
  }

  static Codes LoadCodes(const uint8_t* source) {
    const __m256i* halves = reinterpret_cast<const __m256i*>(source);
    return {_mm256_loadu_si256(halves), _mm256_loadu_si256(halves + 1)};
  }
  static Codes LowNibbles(Codes a) {
    const __m256i mask = _mm256_set1_epi8(15);
    return {_mm256_and_si256(a.low, mask), _mm256_and_si256(a.high, mask)};
  }
  static Codes HighNibbles(Codes a) {
    const __m256i mask = _mm256_set1_epi8(15);
    return {_mm256_and_si256(_mm256_srli_epi16(a.low, 4), mask),
            _mm256_and_si256(_mm256_srli_epi16(a.high, 4), mask)};
  }
  // 127 * 127 * 2 and 128 * 127 * 2 fit 16 bits, 255 * 127 * 2 would not: the top bit goes apart.
  static Int Dot(Int sum, Codes codes, const int8_t* x) {
    const __m256i top = _mm256_set1_epi8(static_cast<char>(0x80));
    const Codes rest{_mm256_andnot_si256(top, codes.low), _mm256_andnot_si256(top, codes.high)};
    const Codes tops{_mm256_and_si256(top, codes.low), _mm256_and_si256(top, codes.high)};
    return DotSmall(DotSmall(sum, rest, x), tops, x);
  }
  static Int DotSmall(Int sum, Codes codes, const int8_t* x) {
    int32_t four;
    std::memcpy(&four, x, sizeof(four));
    const __m256i activations = _mm256_set1_epi32(four);
    const __m256i ones = _mm256_set1_epi16(1);
    return {_mm256_add_epi32(sum.low,
                             _mm256_madd_epi16(_mm256_maddubs_epi16(codes.low, activations), ones)),
            _mm256_add_epi32(
                sum.high, _mm256_madd_epi16(_mm256_maddubs_epi16(codes.high, activations), ones))};
  }

 private:
  static __m128i Load128(const void* source) {
    return _mm_loadu_si128(static_cast<const __m128i*>(source));
  }
  static void Store128(void* target, __m128i value) {
    _mm_storeu_si128(static_cast<__m128i*>(target), value);
  }
};

}  // namespace cairn::engine
