// Turns the bytes of a GGUF file into an index of its metadata and tensors, trusting none of them.
//
// Inside this folder only; others use gguf.h.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/gguf/gguf.h"
#include "kvstore/base/bytes.h"
#include "kvstore/base/result.h"

namespace cairn::engine {

// The types of a metadata value; the numbers are the format's.
enum class ValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// Bytes of a value of fixed size; 0 for strings and arrays.
uint64_t FixedSize(ValueType type);

// One metadata value, checked: `bytes` holds `count` whole values of `type` and nothing else.
// For strings each value is a u64 length and that many bytes.
struct MetadataValue {
  bool is_array = false;
  ValueType type = ValueType::kUint8;
  uint64_t count = 1;
  kv::ByteSpan bytes;
};

// All views point into the bytes given to ParseGguf.
struct GgufIndex {
  std::unordered_map<std::string_view, MetadataValue> metadata;
  std::vector<TensorView> tensors;
  std::unordered_map<std::string_view, size_t> tensor_by_name;
};

kv::Result<GgufIndex> ParseGguf(kv::ByteSpan file);

}  // namespace cairn::engine
