// Reads a GGUF model file: its metadata and where each tensor's bytes lie.
//
// Format: GGUF version 2 and 3, little-endian (ggml's docs/gguf.md). The file is mapped read-only;
// nothing is copied. Every length, offset, type and alignment is checked at Open, so that a
// truncated or damaged file is refused with kCorrupt and words that name the place.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvstore/base/bytes.h"
#include "kvstore/base/result.h"

namespace cairn::engine {

// ggml's tensor types that we compute with; the values are ggml's.
enum class TensorType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ8_0 = 8,
  kQ4_K = 12,
  kQ6_K = 14,
};

std::string_view TensorTypeName(TensorType type);
// Values per quantisation block (1 for F32 and F16), and the bytes of one such block.
uint32_t BlockValues(TensorType type);
uint32_t BlockBytes(TensorType type);
// Bytes of a row of `values` values, which is a multiple of BlockValues(type).
uint64_t RowBytes(TensorType type, uint64_t values);

// A tensor as rows of equal length. GGUF's dims[0] is the row length (contiguous).
struct TensorView {
  std::string_view name;
  TensorType type = TensorType::kF32;
  std::vector<uint64_t> dims;  // 1 to 4 of them.
  kv::ByteSpan bytes;          // RowBytes(type, dims[0]) * product of the other dims.

  uint64_t columns() const { return dims[0]; }
  uint64_t rows() const;
};

class GgufFile {
 public:
  virtual ~GgufFile() = default;

  // kNotFound, kUnavailable (cannot be read), kCorrupt, or kInvalid (a tensor type that we do not
  // compute with, named). The result owns the mapping; all views die with it.
  // The file must not shrink while it is mapped.
  static kv::Result<std::unique_ptr<GgufFile>> Open(const std::string& path);
  // The same for a file held in memory, which the result owns.
  static kv::Result<std::unique_ptr<GgufFile>> Parse(std::vector<uint8_t> bytes);

  // Metadata by key. kNotFound when absent, kInvalid when it is of another type. Integers of any
  // width convert when they fit.
  virtual kv::Result<uint64_t> GetUint(std::string_view key) const = 0;
  virtual kv::Result<double> GetFloat(std::string_view key) const = 0;
  virtual kv::Result<bool> GetBool(std::string_view key) const = 0;
  virtual kv::Result<std::string_view> GetString(std::string_view key) const = 0;
  virtual kv::Result<std::vector<std::string_view>> GetStrings(std::string_view key) const = 0;
  virtual kv::Result<std::vector<int64_t>> GetInts(std::string_view key) const = 0;
  virtual kv::Result<std::vector<float>> GetFloats(std::string_view key) const = 0;

  // kNotFound names the tensor.
  virtual kv::Result<TensorView> GetTensor(std::string_view name) const = 0;
  virtual std::span<const TensorView> tensors() const = 0;

  // SHA-256 over the whole file: the model revision in layout fingerprints. Computed on first use.
  virtual const std::string& sha256_hex() const = 0;
};

}  // namespace cairn::engine
