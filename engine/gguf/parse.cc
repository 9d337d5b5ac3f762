// Turns the bytes of a GGUF file into an index of its metadata and tensors, trusting none of them.
#include "engine/gguf/parse.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>

namespace cairn::engine {
namespace {

using kv::ByteSpan;
using kv::Code;
using kv::Result;
using kv::Status;

constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kAlignmentMax = 1u << 20;
constexpr uint32_t kDimsMax = 4;
constexpr uint64_t kNameBytesMax = 64 * 1024;
// The least that one entry takes: an empty name, its type, and one byte or one dimension.
constexpr uint64_t kMetadataBytesMin = 8 + 4 + 1;
constexpr uint64_t kTensorInfoBytesMin = 8 + 4 + 8 + 4 + 8;

// Names for messages only: ggml's types that exist and that we do not compute with.
std::string ForeignTypeName(uint32_t type) {
  static constexpr std::array<std::string_view, 31> kNames = {
      "F32",     "F16",    "Q4_0",    "Q4_1",  "Q4_2",   "Q4_3",  "Q5_0",  "Q5_1",
      "Q8_0",    "Q8_1",   "Q2_K",    "Q3_K",  "Q4_K",   "Q5_K",  "Q6_K",  "Q8_K",
      "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS",
      "I8",      "I16",    "I32",     "I64",   "F64",    "IQ1_M", "BF16"};
  const std::string number = std::to_string(type);
  if (type >= kNames.size()) return "number " + number;
  return std::string(kNames[type]) + " (number " + number + ")";
}

bool IsSupported(uint32_t type) {
  switch (static_cast<TensorType>(type)) {
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kQ4_0:
    case TensorType::kQ4_1:
    case TensorType::kQ8_0:
    case TensorType::kQ4_K:
    case TensorType::kQ6_K:
      return true;
  }
  return false;
}

// A place in the file that moves forward only; every read says what it was after.
class Cursor {
 public:
  explicit Cursor(ByteSpan file) : file_(file) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return file_.size() - at_; }

  template <typename T>
  Result<T> Read(std::string_view what) {
    if (left() < sizeof(T)) return Truncated(what);
    T value;
    std::memcpy(&value, file_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  Result<std::string_view> ReadString(std::string_view what) {
    KV_ASSIGN_OR_RETURN(const uint64_t size, Read<uint64_t>(what));
    if (size > left()) return Truncated(what);
    const std::string_view text = kv::AsText(file_.subspan(at_, size));
    at_ += size;
    return text;
  }

  Status Skip(uint64_t size, std::string_view what) {
    if (size > left()) return Truncated(what);
    at_ += size;
    return Status();
  }

  ByteSpan Since(uint64_t start) const { return file_.subspan(start, at_ - start); }

  Status Truncated(std::string_view what) const {
    return Status(Code::kCorrupt, "GGUF file ends inside " + std::string(what) + " at byte " +
                                      std::to_string(at_) + " of " + std::to_string(file_.size()));
  }
  Status Corrupt(const std::string& what) const {
    return Status(Code::kCorrupt, "GGUF file: " + what + " before byte " + std::to_string(at_));
  }

 private:
  ByteSpan file_;
  uint64_t at_ = 0;
};

Result<ValueType> ReadValueType(Cursor& cursor, std::string_view key) {
  KV_ASSIGN_OR_RETURN(const uint32_t raw, cursor.Read<uint32_t>("a metadata type"));
  if (raw > static_cast<uint32_t>(ValueType::kFloat64)) {
    return cursor.Corrupt("metadata '" + std::string(key) + "' has unknown type " +
                          std::to_string(raw));
  }
  return static_cast<ValueType>(raw);
}

Status SkipValues(Cursor& cursor, std::string_view key, ValueType type, uint64_t count) {
  if (type == ValueType::kString) {
    if (count > cursor.left() / 8) return cursor.Truncated(key);
    for (uint64_t i = 0; i < count; ++i) KV_RETURN_IF_ERROR(cursor.ReadString(key).status());
    return Status();
  }
  const uint64_t size = FixedSize(type);
  if (count > cursor.left() / size) return cursor.Truncated(key);
  const uint64_t start = cursor.at();
  KV_RETURN_IF_ERROR(cursor.Skip(count * size, key));
  if (type == ValueType::kBool) {
    for (const uint8_t byte : cursor.Since(start)) {
      if (byte > 1) return cursor.Corrupt("metadata '" + std::string(key) + "' is no boolean");
    }
  }
  return Status();
}

Status ReadMetadata(Cursor& cursor, GgufIndex& index) {
  KV_ASSIGN_OR_RETURN(const std::string_view key, cursor.ReadString("a metadata key"));
  if (key.empty() || key.size() > kNameBytesMax) return cursor.Corrupt("bad metadata key");
  MetadataValue value;
  KV_ASSIGN_OR_RETURN(value.type, ReadValueType(cursor, key));
  if (value.type == ValueType::kArray) {
    value.is_array = true;
    KV_ASSIGN_OR_RETURN(value.type, ReadValueType(cursor, key));
    KV_ASSIGN_OR_RETURN(value.count, cursor.Read<uint64_t>(key));
    if (value.type == ValueType::kArray) {
      return Status(Code::kInvalid, "GGUF metadata '" + std::string(key) +
                                        "' is an array of arrays: not supported");
    }
  }
  const uint64_t start = cursor.at();
  KV_RETURN_IF_ERROR(SkipValues(cursor, key, value.type, value.count));
  value.bytes = cursor.Since(start);
  if (!index.metadata.emplace(key, value).second) {
    return cursor.Corrupt("metadata '" + std::string(key) + "' is there twice");
  }
  return Status();
}

struct TensorPlace {
  uint64_t offset = 0;  // From the start of the data section.
  uint64_t size = 0;
};

// The size in bytes, or kCorrupt when the dimensions cannot be true.
Result<uint64_t> TensorBytes(const Cursor& cursor, const TensorView& tensor) {
  const std::string name(tensor.name);
  if (tensor.columns() % BlockValues(tensor.type) != 0) {
    return cursor.Corrupt("tensor '" + name + "' has rows of " + std::to_string(tensor.columns()) +
                          " values, not whole blocks of " +
                          std::string(TensorTypeName(tensor.type)));
  }
  // 2^48 bytes is more than any machine maps, and keeps every product below in 64 bits.
  constexpr uint64_t kBytesMax = uint64_t{1} << 48;
  uint64_t blocks = tensor.columns() / BlockValues(tensor.type);
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    if (tensor.dims[i] == 0) return cursor.Corrupt("tensor '" + name + "' has an empty dimension");
    if (i == 0) continue;
    if (blocks > kBytesMax / tensor.dims[i]) {
      return cursor.Corrupt("tensor '" + name + "' is too large");
    }
    blocks *= tensor.dims[i];
  }
  if (blocks > kBytesMax / BlockBytes(tensor.type)) {
    return cursor.Corrupt("tensor '" + name + "' is too large");
  }
  return blocks * BlockBytes(tensor.type);
}

Result<TensorPlace> ReadTensorInfo(Cursor& cursor, uint64_t alignment, GgufIndex& index) {
  TensorView tensor;
  KV_ASSIGN_OR_RETURN(tensor.name, cursor.ReadString("a tensor name"));
  if (tensor.name.empty() || tensor.name.size() > kNameBytesMax) {
    return cursor.Corrupt("bad tensor name");
  }
  const std::string name(tensor.name);
  KV_ASSIGN_OR_RETURN(const uint32_t dim_count, cursor.Read<uint32_t>(name));
  if (dim_count == 0 || dim_count > kDimsMax) {
    return cursor.Corrupt("tensor '" + name + "' has " + std::to_string(dim_count) + " dimensions");
  }
  for (uint32_t i = 0; i < dim_count; ++i) {
    KV_ASSIGN_OR_RETURN(const uint64_t dim, cursor.Read<uint64_t>(name));
    tensor.dims.push_back(dim);
  }
  KV_ASSIGN_OR_RETURN(const uint32_t type, cursor.Read<uint32_t>(name));
  if (!IsSupported(type)) {
    return Status(Code::kInvalid, "tensor '" + name + "' has type " + ForeignTypeName(type) +
                                      ", which is not supported (F32, F16, Q8_0, Q4_0, Q4_1, "
                                      "Q4_K and Q6_K are)");
  }
  tensor.type = static_cast<TensorType>(type);
  TensorPlace place;
  KV_ASSIGN_OR_RETURN(place.offset, cursor.Read<uint64_t>(name));
  KV_ASSIGN_OR_RETURN(place.size, TensorBytes(cursor, tensor));
  if (place.offset % alignment != 0) {
    return cursor.Corrupt("tensor '" + name + "' is not aligned");
  }
  if (!index.tensor_by_name.emplace(tensor.name, index.tensors.size()).second) {
    return cursor.Corrupt("tensor '" + name + "' is there twice");
  }
  index.tensors.push_back(std::move(tensor));
  return place;
}

Result<uint64_t> Alignment(const Cursor& cursor, const GgufIndex& index) {
  const auto found = index.metadata.find("general.alignment");
  if (found == index.metadata.end()) return kDefaultAlignment;
  const MetadataValue& value = found->second;
  uint32_t alignment = 0;
  if (!value.is_array && value.type == ValueType::kUint32) {
    std::memcpy(&alignment, value.bytes.data(), sizeof(alignment));
  }
  const bool power_of_two = alignment != 0 && (alignment & (alignment - 1)) == 0;
  if (!power_of_two || alignment < 8 || alignment > kAlignmentMax) {
    return cursor.Corrupt("general.alignment is no power of two from 8 to 1048576");
  }
  return uint64_t{alignment};
}

struct Counts {
  uint64_t tensors = 0;
  uint64_t metadata = 0;
};

Result<Counts> ReadHeader(Cursor& cursor) {
  KV_ASSIGN_OR_RETURN(const uint32_t magic, cursor.Read<uint32_t>("the magic"));
  if (magic != 0x46554747) {  // "GGUF"
    return Status(Code::kCorrupt, "not a GGUF file: it does not begin with 'GGUF'");
  }
  KV_ASSIGN_OR_RETURN(const uint32_t version, cursor.Read<uint32_t>("the version"));
  if (version != 2 && version != 3) {
    const bool big_endian = version == 0x02000000 || version == 0x03000000;
    return Status(Code::kInvalid, big_endian ? "the GGUF file is big-endian: not supported"
                                             : "GGUF version " + std::to_string(version) +
                                                   " is not supported (2 and 3 are)");
  }
  Counts counts;
  KV_ASSIGN_OR_RETURN(counts.tensors, cursor.Read<uint64_t>("the tensor count"));
  KV_ASSIGN_OR_RETURN(counts.metadata, cursor.Read<uint64_t>("the metadata count"));
  if (counts.metadata > cursor.left() / kMetadataBytesMin ||
      counts.tensors > cursor.left() / kTensorInfoBytesMin) {
    return cursor.Truncated("counts of metadata and tensors that");
  }
  return counts;
}

}  // namespace

uint64_t FixedSize(ValueType type) {
  switch (type) {
    case ValueType::kUint8:
    case ValueType::kInt8:
    case ValueType::kBool:
      return 1;
    case ValueType::kUint16:
    case ValueType::kInt16:
      return 2;
    case ValueType::kUint32:
    case ValueType::kInt32:
    case ValueType::kFloat32:
      return 4;
    case ValueType::kUint64:
    case ValueType::kInt64:
    case ValueType::kFloat64:
      return 8;
    case ValueType::kString:
    case ValueType::kArray:
      return 0;
  }
  return 0;
}

Result<GgufIndex> ParseGguf(ByteSpan file) {
  Cursor cursor(file);
  KV_ASSIGN_OR_RETURN(const Counts counts, ReadHeader(cursor));
  GgufIndex index;
  for (uint64_t i = 0; i < counts.metadata; ++i) KV_RETURN_IF_ERROR(ReadMetadata(cursor, index));
  KV_ASSIGN_OR_RETURN(const uint64_t alignment, Alignment(cursor, index));
  std::vector<TensorPlace> places;
  for (uint64_t i = 0; i < counts.tensors; ++i) {
    KV_ASSIGN_OR_RETURN(const TensorPlace place, ReadTensorInfo(cursor, alignment, index));
    places.push_back(place);
  }
  if (places.empty()) return index;
  const uint64_t data_start = kv::AlignUp(cursor.at(), alignment);
  for (size_t i = 0; i < places.size(); ++i) {
    const TensorPlace& place = places[i];
    TensorView& tensor = index.tensors[i];
    const bool inside = data_start <= file.size() && place.offset <= file.size() - data_start &&
                        place.size <= file.size() - data_start - place.offset;
    if (!inside) {
      return Status(Code::kCorrupt, "GGUF file of " + std::to_string(file.size()) +
                                        " bytes ends before tensor '" + std::string(tensor.name) +
                                        "' does: truncated?");
    }
    tensor.bytes = file.subspan(data_start + place.offset, place.size);
  }
  return index;
}

}  // namespace cairn::engine
