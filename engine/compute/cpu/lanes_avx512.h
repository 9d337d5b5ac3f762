// Sixteen lanes as one 512-bit register (AVX-512 F, BW, VL, DQ, VNNI). See lanes_portable.h.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace cairn::engine {

struct Avx512Lanes {
  static constexpr int kTokenTile = 8;
  using Float = __m512;
  using Int = __m512i;
  using Codes = __m512i;

  static Float Broadcast(float value) { return _mm512_set1_ps(value); }
  static Float Load(const float* source) { return _mm512_loadu_ps(source); }
  static void Store(float* target, Float a) { _mm512_storeu_ps(target, a); }
  static Float LoadHalf(const uint16_t* source) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(source)));
  }
  static void StoreHalf(uint16_t* target, Float a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(target),
                        _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }

  static Float Add(Float a, Float b) { return _mm512_add_ps(a, b); }
  static Float Sub(Float a, Float b) { return _mm512_sub_ps(a, b); }
  static Float Mul(Float a, Float b) { return _mm512_mul_ps(a, b); }
  static Float Div(Float a, Float b) { return _mm512_div_ps(a, b); }
  static Float Fma(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
  static Float Max(Float a, Float b) { return _mm512_max_ps(a, b); }
  static Float Min(Float a, Float b) { return _mm512_min_ps(a, b); }
  static Float Abs(Float a) { return _mm512_abs_ps(a); }
  static Float IfLess(Float a, Float b, Float x, Float y) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
  }
  static Float FirstLanes(int count, Float a, Float b) {
    return _mm512_mask_blend_ps(static_cast<__mmask16>((1u << count) - 1), b, a);
  }
  static float ReduceAdd(Float a) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float ReduceMax(Float a) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

  static Int BroadcastInt(int32_t value) { return _mm512_set1_epi32(value); }
  static Int AddInt(Int a, Int b) { return _mm512_add_epi32(a, b); }
  static Int MulInt(Int a, Int b) { return _mm512_mullo_epi32(a, b); }
  static int32_t ReduceAddInt(Int a) { return _mm512_reduce_add_epi32(a); }
  static Float ToFloat(Int a) { return _mm512_cvtepi32_ps(a); }
  static Int Round(Float a) {
    return _mm512_cvt_roundps_epi32(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Float PowerOfTwo(Int n) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(n, _mm512_set1_epi32(127)), 23));
  }
  static Int LoadSigned8(const uint8_t* source) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
  }
  static Int LoadUnsigned8(const uint8_t* source) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
  }
  static void StoreSigned8(int8_t* target, Int a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target), _mm512_cvtepi32_epi8(a));
  }

  static Codes LoadCodes(const uint8_t* source) { return _mm512_loadu_si512(source); }
  static Codes LowNibbles(Codes a) { return _mm512_and_si512(a, _mm512_set1_epi8(15)); }
  static Codes HighNibbles(Codes a) {
    return _mm512_and_si512(_mm512_srli_epi16(a, 4), _mm512_set1_epi8(15));
  }
  static Int Dot(Int sum, Codes codes, const int8_t* x) {
    int32_t four;
    std::memcpy(&four, x, sizeof(four));
    return _mm512_dpbusd_epi32(sum, codes, _mm512_set1_epi32(four));
  }
  static Int DotSmall(Int sum, Codes codes, const int8_t* x) { return Dot(sum, codes, x); }
};

}  // namespace cairn::engine
