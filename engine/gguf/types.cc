// What each tensor type is called, and how its values are packed.
#include "engine/gguf/gguf.h"
#include "kvstore/base/check.h"

namespace cairn::engine {

std::string_view TensorTypeName(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return "F32";
    case TensorType::kF16:
      return "F16";
    case TensorType::kQ4_0:
      return "Q4_0";
    case TensorType::kQ4_1:
      return "Q4_1";
    case TensorType::kQ8_0:
      return "Q8_0";
    case TensorType::kQ4_K:
      return "Q4_K";
    case TensorType::kQ6_K:
      return "Q6_K";
  }
  return "unknown";
}

uint32_t BlockValues(TensorType type) {
  switch (type) {
    case TensorType::kF32:
    case TensorType::kF16:
      return 1;
    case TensorType::kQ4_0:
    case TensorType::kQ4_1:
    case TensorType::kQ8_0:
      return 32;
    case TensorType::kQ4_K:
    case TensorType::kQ6_K:
      return 256;
  }
  KV_CHECK(false);
  return 1;
}

uint32_t BlockBytes(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return 4;
    case TensorType::kF16:
      return 2;
    case TensorType::kQ4_0:
      return 18;  // Half scale, 32 nibbles.
    case TensorType::kQ4_1:
      return 20;  // Half scale, half minimum, 32 nibbles.
    case TensorType::kQ8_0:
      return 34;  // Half scale, 32 bytes.
    case TensorType::kQ4_K:
      return 144;  // Two halves, 12 bytes of scales, 256 nibbles.
    case TensorType::kQ6_K:
      return 210;  // 256 x 6 bits, 16 scales, one half.
  }
  KV_CHECK(false);
  return 1;
}

uint64_t RowBytes(TensorType type, uint64_t values) {
  KV_CHECK(values % BlockValues(type) == 0);
  return values / BlockValues(type) * BlockBytes(type);
}

uint64_t TensorView::rows() const {
  uint64_t product = 1;
  for (size_t i = 1; i < dims.size(); ++i) product *= dims[i];
  return product;
}

}  // namespace cairn::engine
