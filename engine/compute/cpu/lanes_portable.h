// Sixteen lanes in plain C++: the meaning that lanes_avx2.h and lanes_avx512.h must match bit for
// bit.
//
// A kernel is written once over a lanes type L and compiled per instruction set. L offers
//   Float, Int  sixteen floats or 32-bit integers
//   Codes       64 bytes: four unsigned codes of consecutive columns for each of sixteen rows
// Every operation is lane by lane with one rounding (Fma has one for both), and reductions have one
// fixed order. So all instruction sets give the same bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "engine/gguf/half.h"

namespace cairn::engine {

struct PortableLanes {
  static constexpr int kTokenTile = 4;  // Tokens that a matrix kernel handles together.
  struct Float {
    float at[16];
  };
  struct Int {
    int32_t at[16];
  };
  struct Codes {
    uint8_t at[64];
  };

  template <typename Function>
  static Float MakeFloat(Function function) {
    Float result;
    for (int i = 0; i < 16; ++i) result.at[i] = function(i);
    return result;
  }
  template <typename Function>
  static Int MakeInt(Function function) {
    Int result;
    for (int i = 0; i < 16; ++i) result.at[i] = function(i);
    return result;
  }

  static Float Broadcast(float value) {
    return MakeFloat([&](int) { return value; });
  }
  static Float Load(const float* source) {
    return MakeFloat([&](int i) { return source[i]; });
  }
  static void Store(float* target, Float a) { std::memcpy(target, a.at, sizeof(a.at)); }
  static Float LoadHalf(const uint16_t* source) {
    return MakeFloat([&](int i) { return HalfToFloat(source[i]); });
  }
  static void StoreHalf(uint16_t* target, Float a) {
    for (int i = 0; i < 16; ++i) target[i] = FloatToHalf(a.at[i]);
  }

  static Float Add(Float a, Float b) {
    return MakeFloat([&](int i) { return a.at[i] + b.at[i]; });
  }
  static Float Sub(Float a, Float b) {
    return MakeFloat([&](int i) { return a.at[i] - b.at[i]; });
  }
  static Float Mul(Float a, Float b) {
    return MakeFloat([&](int i) { return a.at[i] * b.at[i]; });
  }
  static Float Div(Float a, Float b) {
    return MakeFloat([&](int i) { return a.at[i] / b.at[i]; });
  }
  // a * b + c, rounded once.
  static Float Fma(Float a, Float b, Float c) {
    return MakeFloat([&](int i) { return std::fma(a.at[i], b.at[i], c.at[i]); });
  }
  // b where either is not a number.
  static Float Max(Float a, Float b) {
    return MakeFloat([&](int i) { return a.at[i] > b.at[i] ? a.at[i] : b.at[i]; });
  }
  static Float Min(Float a, Float b) {
    return MakeFloat([&](int i) { return a.at[i] < b.at[i] ? a.at[i] : b.at[i]; });
  }
  static Float Abs(Float a) {
    return MakeFloat([&](int i) { return std::fabs(a.at[i]); });
  }
  // a < b ? x : y
  static Float IfLess(Float a, Float b, Float x, Float y) {
    return MakeFloat([&](int i) { return a.at[i] < b.at[i] ? x.at[i] : y.at[i]; });
  }
  // Lanes below `count` of a, the others of b.
  static Float FirstLanes(int count, Float a, Float b) {
    return MakeFloat([&](int i) { return i < count ? a.at[i] : b.at[i]; });
  }
  // Halves added to halves: i with i + 8, then 4, 2, 1.
  static float ReduceAdd(Float a) {
    for (int width = 8; width > 0; width /= 2) {
      for (int i = 0; i < width; ++i) a.at[i] = a.at[i] + a.at[i + width];
    }
    return a.at[0];
  }
  static float ReduceMax(Float a) {
    for (int width = 8; width > 0; width /= 2) {
      for (int i = 0; i < width; ++i)
        a.at[i] = a.at[i] > a.at[i + width] ? a.at[i] : a.at[i + width];
    }
    return a.at[0];
  }

  static Int BroadcastInt(int32_t value) {
    return MakeInt([&](int) { return value; });
  }
  static Int AddInt(Int a, Int b) {
    return MakeInt([&](int i) { return a.at[i] + b.at[i]; });
  }
  static Int MulInt(Int a, Int b) {
    return MakeInt([&](int i) { return a.at[i] * b.at[i]; });
  }
  static int32_t ReduceAddInt(Int a) {
    int32_t sum = 0;
    for (int i = 0; i < 16; ++i) sum += a.at[i];
    return sum;
  }
  static Float ToFloat(Int a) {
    return MakeFloat([&](int i) { return static_cast<float>(a.at[i]); });
  }
  // To the nearest, ties to even. |a| < 2^31.
  static Int Round(Float a) {
    return MakeInt([&](int i) { return static_cast<int32_t>(std::nearbyint(a.at[i])); });
  }
  // 2^n for -126 <= n <= 127.
  static Float PowerOfTwo(Int n) {
    return MakeFloat([&](int i) {
      const uint32_t bits = static_cast<uint32_t>(n.at[i] + 127) << 23;
      float value;
      std::memcpy(&value, &bits, sizeof(value));
      return value;
    });
  }
  static Int LoadSigned8(const uint8_t* source) {
    return MakeInt([&](int i) { return int32_t{static_cast<int8_t>(source[i])}; });
  }
  static Int LoadUnsigned8(const uint8_t* source) {
    return MakeInt([&](int i) { return int32_t{source[i]}; });
  }
  // Each lane is in [-128, 127].
  static void StoreSigned8(int8_t* target, Int a) {
    for (int i = 0; i < 16; ++i) target[i] = static_cast<int8_t>(a.at[i]);
  }

  static Codes LoadCodes(const uint8_t* source) {
    Codes result;
    std::memcpy(result.at, source, sizeof(result.at));
    return result;
  }
  static Codes LowNibbles(Codes a) {
    for (uint8_t& code : a.at) code = code & 15;
    return a;
  }
  static Codes HighNibbles(Codes a) {
    for (uint8_t& code : a.at) code = static_cast<uint8_t>(code >> 4);
    return a;
  }
  // sum[row] += codes[row] . x over four columns. DotSmall asks for codes below 128.
  static Int Dot(Int sum, Codes codes, const int8_t* x) {
    return MakeInt([&](int i) {
      int32_t lane = sum.at[i];
      for (int column = 0; column < 4; ++column) lane += codes.at[4 * i + column] * x[column];
      return lane;
    });
  }
  static Int DotSmall(Int sum, Codes codes, const int8_t* x) { return Dot(sum, codes, x); }
};

}  // namespace cairn::engine
