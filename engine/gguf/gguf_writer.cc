// Writes a GGUF version 3 file: metadata, then tensors.
#include "engine/gguf/gguf_writer.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "engine/gguf/parse.h"
#include "engine/gguf/quantize.h"
#include "kvstore/base/check.h"

namespace cairn::engine {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kVersion = 3;
constexpr uint64_t kAlignment = 32;  // The format's default: needs no general.alignment.

template <typename T>
void Put(std::vector<uint8_t>& target, T value) {
  const size_t at = target.size();
  target.resize(at + sizeof(value));
  std::memcpy(target.data() + at, &value, sizeof(value));
}

void PutString(std::vector<uint8_t>& target, std::string_view text) {
  Put(target, uint64_t{text.size()});
  target.insert(target.end(), text.begin(), text.end());
}

uint32_t Number(ValueType type) { return static_cast<uint32_t>(type); }

void PutArrayHead(std::vector<uint8_t>& target, ValueType type, size_t count) {
  Put(target, Number(type));
  Put(target, uint64_t{count});
}

}  // namespace

void GgufWriter::PutKey(std::string_view key, uint32_t type) {
  PutString(metadata_, key);
  Put(metadata_, type);
  ++metadata_count_;
}

void GgufWriter::SetUint32(std::string_view key, uint32_t value) {
  PutKey(key, Number(ValueType::kUint32));
  Put(metadata_, value);
}

void GgufWriter::SetUint64(std::string_view key, uint64_t value) {
  PutKey(key, Number(ValueType::kUint64));
  Put(metadata_, value);
}

void GgufWriter::SetFloat(std::string_view key, float value) {
  PutKey(key, Number(ValueType::kFloat32));
  Put(metadata_, value);
}

void GgufWriter::SetBool(std::string_view key, bool value) {
  PutKey(key, Number(ValueType::kBool));
  Put(metadata_, uint8_t{value});
}

void GgufWriter::SetString(std::string_view key, std::string_view value) {
  PutKey(key, Number(ValueType::kString));
  PutString(metadata_, value);
}

void GgufWriter::SetStrings(std::string_view key, std::span<const std::string> values) {
  PutKey(key, Number(ValueType::kArray));
  PutArrayHead(metadata_, ValueType::kString, values.size());
  for (const std::string& value : values) PutString(metadata_, value);
}

void GgufWriter::SetInts(std::string_view key, std::span<const int32_t> values) {
  PutKey(key, Number(ValueType::kArray));
  PutArrayHead(metadata_, ValueType::kInt32, values.size());
  for (const int32_t value : values) Put(metadata_, value);
}

void GgufWriter::SetFloats(std::string_view key, std::span<const float> values) {
  PutKey(key, Number(ValueType::kArray));
  PutArrayHead(metadata_, ValueType::kFloat32, values.size());
  for (const float value : values) Put(metadata_, value);
}

void GgufWriter::AddTensor(std::string_view name, TensorType type, std::vector<uint64_t> dims,
                           std::span<const float> values) {
  KV_CHECK(!dims.empty());
  const uint64_t columns = dims[0];
  const uint64_t row_bytes = RowBytes(type, columns);
  std::vector<uint8_t> packed(values.size() / columns * row_bytes);
  for (uint64_t row = 0; row < values.size() / columns; ++row) {
    PackRow(type, values.subspan(row * columns, columns),
            kv::MutableByteSpan(packed).subspan(row * row_bytes, row_bytes));
  }
  AddPackedTensor(name, type, std::move(dims), packed);
}

void GgufWriter::AddPackedTensor(std::string_view name, TensorType type, std::vector<uint64_t> dims,
                                 kv::ByteSpan bytes) {
  const TensorView shape{.name = name, .type = type, .dims = dims, .bytes = bytes};
  KV_CHECK(bytes.size() == RowBytes(type, shape.columns()) * shape.rows());
  data_.resize(kv::AlignUp(data_.size(), kAlignment));
  tensors_.push_back({std::string(name), type, std::move(dims), data_.size()});
  data_.insert(data_.end(), bytes.begin(), bytes.end());
}

std::vector<uint8_t> GgufWriter::Finish() const {
  std::vector<uint8_t> file;
  Put(file, kMagic);
  Put(file, kVersion);
  Put(file, uint64_t{tensors_.size()});
  Put(file, metadata_count_);
  file.insert(file.end(), metadata_.begin(), metadata_.end());
  for (const Tensor& tensor : tensors_) {
    PutString(file, tensor.name);
    Put(file, static_cast<uint32_t>(tensor.dims.size()));
    for (const uint64_t dim : tensor.dims) Put(file, dim);
    Put(file, static_cast<uint32_t>(tensor.type));
    Put(file, tensor.offset);
  }
  file.resize(kv::AlignUp(file.size(), kAlignment));
  file.insert(file.end(), data_.begin(), data_.end());
  return file;
}

kv::Status GgufWriter::WriteTo(const std::string& path) const {
  const std::vector<uint8_t> bytes = Finish();
  const std::string beside = path + ".partial";
  std::FILE* file = std::fopen(beside.c_str(), "wb");
  bool written =
      file != nullptr && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  int error = errno;
  if (file != nullptr && std::fclose(file) != 0) {
    written = false;
    error = errno;
  }
  if (written && std::rename(beside.c_str(), path.c_str()) == 0) return kv::Status();
  if (written) error = errno;
  std::remove(beside.c_str());
  return kv::Status(error == ENOSPC ? kv::Code::kNoSpace : kv::Code::kUnavailable,
                    "cannot write model file '" + path + "': " + std::strerror(error));
}

}  // namespace cairn::engine
