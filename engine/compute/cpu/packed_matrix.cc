// Packs GGUF rows into panels, and reads single rows.
#include "engine/compute/cpu/packed_matrix.h"

#include <cstring>

#include "engine/compute/cpu/quant_block.h"
#include "engine/gguf/half.h"
#include "kvstore/base/check.h"
#include "kvstore/base/units.h"

namespace cairn::engine {
namespace {

constexpr uint32_t kRows = 16;  // Of a panel.

PackFormat FormatFor(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return PackFormat::kFloat;
    case TensorType::kF16:
      return PackFormat::kHalf;
    case TensorType::kQ4_0:
      return PackFormat::kBits4;
    case TensorType::kQ4_1:
      return PackFormat::kBits4Min;
    case TensorType::kQ8_0:
      return PackFormat::kBits8;
    case TensorType::kQ4_K:
      return PackFormat::kSuper4;
    case TensorType::kQ6_K:
      return PackFormat::kSuper6;
  }
  KV_CHECK(false);
  return PackFormat::kFloat;
}

size_t PanelBytes(PackFormat format, size_t columns) {
  switch (format) {
    case PackFormat::kFloat:
      return columns * kRows * 4;
    case PackFormat::kHalf:
      return columns * kRows * 2;
    case PackFormat::kBits4:
      return BlockCodesOffset(columns / 32, false) + columns * kRows / 2;
    case PackFormat::kBits4Min:
      return BlockCodesOffset(columns / 32, true) + columns * kRows / 2;
    case PackFormat::kBits8:
      return BlockCodesOffset(columns / 32, false) + columns * kRows;
    case PackFormat::kSuper4:
      return columns / 256 * kSuper4Bytes;
    case PackFormat::kSuper6:
      return columns / 256 * kSuper6Bytes;
  }
  return 0;
}

// 32 columns of one row into a block of panel codes.
void PlaceBytes(const uint8_t* codes, uint32_t row, uint8_t* target) {
  for (uint32_t part = 0; part < 8; ++part) {
    std::memcpy(target + 64 * part + 4 * row, codes + 4 * part, 4);
  }
}
void PlaceNibbles(const uint8_t* codes, uint32_t row, uint8_t* target) {
  for (uint32_t i = 0; i < 16; ++i) {
    target[64 * (i / 4) + 4 * row + i % 4] = static_cast<uint8_t>(codes[i] | (codes[i + 16] << 4));
  }
}
void PlaceHalf(uint16_t half, uint8_t* target) { std::memcpy(target, &half, sizeof(half)); }

// One block of 32 columns of one row.
void PlaceBlock(const QuantBlock& block, PackFormat format, size_t blocks, size_t index,
                uint32_t row, uint8_t* panel) {
  PlaceHalf(block.scale, panel + 32 * index + 2 * row);
  if (format == PackFormat::kBits4Min) {
    PlaceHalf(block.minimum, panel + 32 * (blocks + index) + 2 * row);
  }
  uint8_t* codes = panel + BlockCodesOffset(blocks, format == PackFormat::kBits4Min);
  if (format == PackFormat::kBits8) {
    PlaceBytes(block.codes, row, codes + 512 * index);
  } else {
    PlaceNibbles(block.codes, row, codes + 256 * index);
  }
}

void PlaceSuper4(const QuantBlock& block, uint32_t row, uint8_t* target) {
  uint8_t* meta = target + 8 * 256;
  for (uint32_t i = 0; i < 8; ++i) {
    PlaceNibbles(block.codes + 32 * i, row, target + 256 * i);
    meta[16 * i + row] = static_cast<uint8_t>(block.sub_scale[i]);
    meta[128 + 16 * i + row] = static_cast<uint8_t>(block.sub_minimum[i]);
  }
  PlaceHalf(block.scale, meta + 256 + 2 * row);
  PlaceHalf(block.minimum, meta + 256 + 32 + 2 * row);
}

void PlaceSuper6(const QuantBlock& block, uint32_t row, uint8_t* target) {
  uint8_t* meta = target + 8 * 512;
  for (uint32_t i = 0; i < 8; ++i) PlaceBytes(block.codes + 32 * i, row, target + 512 * i);
  for (uint32_t i = 0; i < 16; ++i) meta[16 * i + row] = static_cast<uint8_t>(block.sub_scale[i]);
  PlaceHalf(block.scale, meta + 256 + 2 * row);
}

void PlaceRow(const TensorView& tensor, PackFormat format, uint64_t source_row, uint32_t row,
              uint8_t* panel) {
  const uint64_t columns = tensor.columns();
  const uint8_t* source = tensor.bytes.data() + source_row * RowBytes(tensor.type, columns);
  if (format == PackFormat::kFloat || format == PackFormat::kHalf) {
    const size_t size = format == PackFormat::kFloat ? 4 : 2;
    for (uint64_t c = 0; c < columns; ++c) {
      std::memcpy(panel + (c * kRows + row) * size, source + c * size, size);
    }
    return;
  }
  const uint64_t blocks = columns / BlockValues(tensor.type);
  QuantBlock block;
  for (uint64_t i = 0; i < blocks; ++i, source += BlockBytes(tensor.type)) {
    TakeApart(tensor.type, source, block);
    if (format == PackFormat::kSuper4) {
      PlaceSuper4(block, row, panel + i * kSuper4Bytes);
    } else if (format == PackFormat::kSuper6) {
      PlaceSuper6(block, row, panel + i * kSuper6Bytes);
    } else {
      PlaceBlock(block, format, blocks, i, row, panel);
    }
  }
}

float ValueAt(TensorType type, const QuantBlock& block, uint32_t column) {
  const int code = block.codes[column];
  const float scale = HalfToFloat(block.scale);
  switch (type) {
    case TensorType::kQ4_0:
      return scale * static_cast<float>(code - 8);
    case TensorType::kQ4_1:
      return scale * static_cast<float>(code) + HalfToFloat(block.minimum);
    case TensorType::kQ8_0:
      return scale * static_cast<float>(code - 128);
    case TensorType::kQ4_K:
      return scale * block.sub_scale[column / 32] * static_cast<float>(code) -
             HalfToFloat(block.minimum) * block.sub_minimum[column / 32];
    default:  // kQ6_K
      return scale * block.sub_scale[column / 16] * static_cast<float>(code - 32);
  }
}

}  // namespace

PackedMatrix::PackedMatrix(const TensorView& tensor)
    : format_(FormatFor(tensor.type)),
      columns_(static_cast<uint32_t>(tensor.columns())),
      panel_count_(static_cast<uint32_t>(kv::DivCeil(tensor.rows(), kRows))),
      panel_bytes_(kv::AlignUp(PanelBytes(format_, columns_), 64)),
      data_(panel_count_ * panel_bytes_) {
  KV_CHECK(columns_ % BlockValues(tensor.type) == 0);
  for (uint64_t row = 0; row < tensor.rows(); ++row) {
    uint8_t* panel = data_.data() + row / kRows * panel_bytes_;
    PlaceRow(tensor, format_, row, static_cast<uint32_t>(row % kRows), panel);
  }
}

ActivationForm PackedMatrix::form() const {
  switch (format_) {
    case PackFormat::kFloat:
    case PackFormat::kHalf:
      return ActivationForm::kFloats;
    case PackFormat::kSuper4:
    case PackFormat::kSuper6:
      return ActivationForm::kQuantised256;
    default:
      return ActivationForm::kQuantised32;
  }
}

void ReadRow(const TensorView& tensor, uint64_t row, float* output) {
  const uint64_t columns = tensor.columns();
  const uint8_t* source = tensor.bytes.data() + row * RowBytes(tensor.type, columns);
  if (tensor.type == TensorType::kF32) {
    std::memcpy(output, source, columns * sizeof(float));
    return;
  }
  if (tensor.type == TensorType::kF16) {
    for (uint64_t c = 0; c < columns; ++c) {
      uint16_t half;
      std::memcpy(&half, source + 2 * c, sizeof(half));
      output[c] = HalfToFloat(half);
    }
    return;
  }
  const uint32_t values = BlockValues(tensor.type);
  QuantBlock block;
  for (uint64_t i = 0; i < columns / values; ++i, source += BlockBytes(tensor.type)) {
    TakeApart(tensor.type, source, block);
    for (uint32_t c = 0; c < values; ++c) output[i * values + c] = ValueAt(tensor.type, block, c);
  }
}

}  // namespace cairn::engine
