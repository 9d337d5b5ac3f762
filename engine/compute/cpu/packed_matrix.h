// A weight matrix as the kernels want it: panels of 16 rows, interleaved so that a lane is a row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/compute/cpu/kernels.h"
#include "engine/gguf/gguf.h"
#include "kvstore/base/bytes.h"

namespace cairn::engine {

// A panel, by format (all values little-endian, every code part 64-byte aligned):
//   kFloat, kHalf   [column][row]
//   blocks of 32    scales as halves [block][row]; for kBits4Min minima likewise; padding to 64
//   bytes;
//                   then per block the codes [column / 4][row][column % 4]. With 4 bits, a byte
//                   holds columns c and c + 16.
//   kSuper4         per 256 columns: eight blocks of codes; scales and minima in bytes
//   [block][row];
//                   the two common scales as halves [row]
//   kSuper6         per 256 columns: eight blocks of codes in bytes; scales in signed bytes
//                   [column / 16][row]; the common scale as halves [row]; padding to 64 bytes
constexpr size_t BlockCodesOffset(size_t blocks, bool has_min) {
  return (blocks * 32 * (has_min ? 2 : 1) + 63) / 64 * 64;
}
inline constexpr size_t kSuper4Bytes = 8 * 256 + 2 * 128 + 64;
inline constexpr size_t kSuper6Bytes = 8 * 512 + 256 + 64;

// Which form of the activations a format multiplies with.
enum class ActivationForm : uint8_t { kFloats, kQuantised32, kQuantised256 };

class PackedMatrix {
 public:
  PackedMatrix() = default;
  // `tensor` is a matrix. Rows are padded to a multiple of 16 with zeros.
  explicit PackedMatrix(const TensorView& tensor);

  uint32_t panel_count() const { return panel_count_; }
  uint32_t columns() const { return columns_; }
  size_t bytes() const { return data_.size(); }
  ActivationForm form() const;

  // Rows 16 * panel to 16 * panel + 15 times all tokens of `args`, whose panel and columns are set
  // here. `args.output` is that of row 0.
  void MultiplyPanel(const CpuKernelTable& kernels, uint32_t panel, MatMulArgs args) const {
    args.panel = data_.data() + panel * panel_bytes_;
    args.columns = columns_;
    args.output += size_t{16} * panel;
    kernels.multiply[static_cast<size_t>(format_)](args);
  }

 private:
  PackFormat format_ = PackFormat::kFloat;
  uint32_t columns_ = 0;
  uint32_t panel_count_ = 0;
  size_t panel_bytes_ = 0;
  kv::Bytes data_;
};

// Values of one row of a tensor as floats: exactly what the file says.
void ReadRow(const TensorView& tensor, uint64_t row, float* output);

}  // namespace cairn::engine
