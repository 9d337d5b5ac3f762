// The inner loops of the CPU backend as one table of functions per instruction set.
//
// All tables give the same bits. Widths of float rows are padded to 16 with zeros, which every
// kernel keeps zero. No kernel's result for one token depends on the other tokens given with it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/compute/cpu/cpu_backend.h"

namespace cairn::engine {

// How a matrix lies in memory: panels of 16 rows, one lane per row. See packed_matrix.h.
enum class PackFormat : uint8_t {
  kFloat,     // F32, F16: 32-bit floats.
  kHalf,      // F16.
  kBits4,     // Q4_0: codes - 8, one scale per 32 columns.
  kBits4Min,  // Q4_1: scale * code + minimum per 32 columns.
  kBits8,     // Q8_0: codes - 128.
  kSuper4,    // Q4_K: 8 scales and minima of 6 bits per 256 columns.
  kSuper6,    // Q6_K: codes - 32 (in bytes), 16 scales per 256 columns.
};
inline constexpr int kPackFormatCount = 7;

// Activations rounded to 8 bits as ggml does, down to the halves in which it keeps scales:
// x = scale * code.
//   per 32 columns (Q8_0, Q8_1):  scale = max|x| / 127, as a half
//   per 256 columns (Q8_K):       scale = -extreme x / 127
struct QuantisedRows {
  int8_t* codes = nullptr;       // [token][columns]
  float* scales = nullptr;       // [token][columns / 32 or 256]
  int32_t* sums = nullptr;       // [token][columns / 32 or 16]: of the codes.
  float* scaled_sums = nullptr;  // [token][columns / 32]: sum * scale, as a half. Not per 256.
};

// One panel times some tokens: output[token][0..15] = panel . activations[token].
struct MatMulArgs {
  const uint8_t* panel = nullptr;
  uint32_t columns = 0;
  uint32_t tokens = 0;
  const float* floats = nullptr;  // kFloat, kHalf: [token][float_stride].
  size_t float_stride = 0;
  QuantisedRows quantised;  // The others.
  float* output = nullptr;
  size_t output_stride = 0;
};

// Some consecutive tokens of one sequence against one key/value head and all its query heads.
struct AttentionArgs {
  const uint8_t* const* blocks = nullptr;  // The sequence's KV blocks, by position / block_tokens.
  uint32_t block_tokens = 0;
  size_t keys_offset = 0;    // Bytes into a block: [position / 16][head_dim][position % 16].
  size_t values_offset = 0;  // [position][head_dim].
  uint32_t head_dim = 0;
  uint32_t position = 0;  // Of the first token.
  uint32_t tokens = 0;
  uint32_t group = 0;  // Query heads per key/value head. tokens * group <= kAttentionRowsMax.
  float scale = 0.0f;
  const float* queries = nullptr;  // [token][stride], the group's heads side by side.
  float* output = nullptr;         // Likewise.
  size_t stride = 0;
  float* scratch = nullptr;  // AttentionScratch(head_dim) floats.
};
inline constexpr uint32_t kAttentionRowsMax = 32;
inline constexpr uint32_t kHeadDimMax = 256;

struct CpuKernelTable {
  void (*multiply[kPackFormatCount])(const MatMulArgs& args);
  void (*attend)(const AttentionArgs& args);
  // One row each; the outputs are that row's place in QuantisedRows.
  void (*quantise32)(const float* x, uint32_t columns, const QuantisedRows& row);
  void (*quantise256)(const float* x, uint32_t columns, const QuantisedRows& row);
  // output = x / sqrt(mean(x^2) + epsilon) * weight; `width` values are real, the rest padding.
  void (*rms_norm)(const float* x, const float* weight, uint32_t width, float epsilon,
                   float* output);
  // gate = gate * sigmoid(gate) * up
  void (*swiglu)(float* gate, const float* up, uint32_t width);
  void (*add)(float* x, const float* y, uint32_t width);
  // `count` is rounded up to 16 on both sides.
  void (*to_half)(const float* x, uint32_t count, uint16_t* output);
};

// `kernels` is supported here (CpuSupports). kBest is the fastest.
const CpuKernelTable& SelectCpuKernels(CpuKernels kernels);

// The tables as they are compiled; nullptr where this build has none for the architecture.
const CpuKernelTable* PortableKernelTable();
const CpuKernelTable* Avx2KernelTable();
const CpuKernelTable* Avx512KernelTable();

}  // namespace cairn::engine
