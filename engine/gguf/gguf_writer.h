// Writes a GGUF version 3 file: metadata, then tensors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/gguf/gguf.h"
#include "kvstore/base/bytes.h"
#include "kvstore/base/status.h"

namespace cairn::engine {

// Collects everything in memory: for small models. Keys and tensor names may be given once each.
class GgufWriter {
 public:
  void SetUint32(std::string_view key, uint32_t value);
  void SetUint64(std::string_view key, uint64_t value);
  void SetFloat(std::string_view key, float value);
  void SetBool(std::string_view key, bool value);
  void SetString(std::string_view key, std::string_view value);
  void SetStrings(std::string_view key, std::span<const std::string> values);
  void SetInts(std::string_view key, std::span<const int32_t> values);
  void SetFloats(std::string_view key, std::span<const float> values);

  // `dims[0]` is the row length; `values` are packed into `type` row by row.
  void AddTensor(std::string_view name, TensorType type, std::vector<uint64_t> dims,
                 std::span<const float> values);
  // The same for bytes that are packed already.
  void AddPackedTensor(std::string_view name, TensorType type, std::vector<uint64_t> dims,
                       kv::ByteSpan bytes);

  // The whole file. May be called again after more was added.
  std::vector<uint8_t> Finish() const;
  // Writes the file whole or not at all: beside `path` first, then renamed. kUnavailable, kNoSpace.
  kv::Status WriteTo(const std::string& path) const;

 private:
  struct Tensor {
    std::string name;
    TensorType type;
    std::vector<uint64_t> dims;
    uint64_t offset;
  };

  void PutKey(std::string_view key, uint32_t type);

  uint64_t metadata_count_ = 0;
  std::vector<uint8_t> metadata_;
  std::vector<Tensor> tensors_;
  std::vector<uint8_t> data_;
};

}  // namespace cairn::engine
