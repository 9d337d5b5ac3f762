// Reads a GGUF model file: maps it, and answers typed questions about its index.
#include "engine/gguf/gguf.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>

#include "engine/gguf/parse.h"
#include "kvstore/base/digest.h"

namespace cairn::engine {
namespace {

using kv::ByteSpan;
using kv::Code;
using kv::Result;
using kv::Status;

// A whole file mapped read-only. Moving keeps the addresses.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* address, size_t size) : address_(address), size_(size) {}
  Mapping(Mapping&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping() {
    if (address_ != nullptr) ::munmap(address_, size_);
  }

  ByteSpan bytes() const { return {static_cast<const uint8_t*>(address_), size_}; }

 private:
  void* address_ = nullptr;
  size_t size_ = 0;
};

Status FromErrno(const std::string& path, int error) {
  const Code code = error == ENOENT ? Code::kNotFound : Code::kUnavailable;
  return Status(code, "cannot read model file '" + path + "': " + std::strerror(error));
}

Result<Mapping> MapFile(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return FromErrno(path, errno);
  struct stat info = {};
  if (::fstat(file, &info) != 0) {
    const int error = errno;
    ::close(file);
    return FromErrno(path, error);
  }
  if (!S_ISREG(info.st_mode) || info.st_size == 0) {
    ::close(file);
    return Status(S_ISREG(info.st_mode) ? Code::kCorrupt : Code::kUnavailable,
                  "model file '" + path + "' is empty or no regular file");
  }
  const size_t size = static_cast<size_t>(info.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  const int error = errno;
  ::close(file);
  if (address == MAP_FAILED) return FromErrno(path, error);
  return Mapping(address, size);
}

// Integers of any width, and booleans never. nullopt for other types.
std::optional<int64_t> AsInt(ValueType type, const uint8_t* at, bool& too_large) {
  const auto load = [at](auto value) {
    std::memcpy(&value, at, sizeof(value));
    return value;
  };
  switch (type) {
    case ValueType::kUint8:
      return load(uint8_t{});
    case ValueType::kInt8:
      return load(int8_t{});
    case ValueType::kUint16:
      return load(uint16_t{});
    case ValueType::kInt16:
      return load(int16_t{});
    case ValueType::kUint32:
      return load(uint32_t{});
    case ValueType::kInt32:
      return load(int32_t{});
    case ValueType::kInt64:
      return load(int64_t{});
    case ValueType::kUint64: {
      const uint64_t value = load(uint64_t{});
      too_large = value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
      return static_cast<int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> AsFloat(ValueType type, const uint8_t* at) {
  if (type == ValueType::kFloat32) {
    float value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  if (type == ValueType::kFloat64) {
    double value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  return std::nullopt;
}

std::string_view StringAt(const uint8_t* at, const uint8_t** next) {
  uint64_t size;
  std::memcpy(&size, at, sizeof(size));
  *next = at + sizeof(size) + size;
  return {reinterpret_cast<const char*>(at + sizeof(size)), size};
}

Status WrongType(std::string_view key, std::string_view wanted) {
  return Status(Code::kInvalid,
                "GGUF metadata '" + std::string(key) + "' is no " + std::string(wanted));
}

class IndexedGguf final : public GgufFile {
 public:
  // One of the two holds the bytes that `index` points into.
  IndexedGguf(Mapping mapping, std::vector<uint8_t> memory, GgufIndex index)
      : mapping_(std::move(mapping)), memory_(std::move(memory)), index_(std::move(index)) {}

  Result<uint64_t> GetUint(std::string_view key) const override {
    KV_ASSIGN_OR_RETURN(const MetadataValue* value, Find(key));
    bool too_large = false;
    const auto number =
        value->is_array ? std::nullopt : AsInt(value->type, value->bytes.data(), too_large);
    if (!number || (*number < 0 && !too_large)) return WrongType(key, "unsigned integer");
    return static_cast<uint64_t>(*number);
  }

  Result<double> GetFloat(std::string_view key) const override {
    KV_ASSIGN_OR_RETURN(const MetadataValue* value, Find(key));
    const auto number = value->is_array ? std::nullopt : AsFloat(value->type, value->bytes.data());
    if (!number) return WrongType(key, "floating-point number");
    return *number;
  }

  Result<bool> GetBool(std::string_view key) const override {
    KV_ASSIGN_OR_RETURN(const MetadataValue* value, Find(key));
    if (value->is_array || value->type != ValueType::kBool) return WrongType(key, "boolean");
    return value->bytes[0] != 0;
  }

  Result<std::string_view> GetString(std::string_view key) const override {
    KV_ASSIGN_OR_RETURN(const MetadataValue* value, Find(key));
    if (value->is_array || value->type != ValueType::kString) return WrongType(key, "string");
    const uint8_t* next = nullptr;
    return StringAt(value->bytes.data(), &next);
  }

  Result<std::vector<std::string_view>> GetStrings(std::string_view key) const override {
    KV_ASSIGN_OR_RETURN(const MetadataValue* value, Find(key));
    if (!value->is_array || value->type != ValueType::kString) {
      return WrongType(key, "array of strings");
    }
    std::vector<std::string_view> strings;
    strings.reserve(value->count);
    const uint8_t* at = value->bytes.data();
    for (uint64_t i = 0; i < value->count; ++i) strings.push_back(StringAt(at, &at));
    return strings;
  }

  Result<std::vector<int64_t>> GetInts(std::string_view key) const override {
    KV_ASSIGN_OR_RETURN(const MetadataValue* value, Find(key));
    std::vector<int64_t> numbers;
    if (!value->is_array) return WrongType(key, "array of integers");
    for (uint64_t i = 0; i < value->count; ++i) {
      const uint64_t step = FixedSize(value->type);
      bool too_large = false;
      const auto number = AsInt(value->type, value->bytes.data() + i * step, too_large);
      if (!number || too_large) return WrongType(key, "array of 64-bit integers");
      numbers.push_back(*number);
    }
    return numbers;
  }

  Result<std::vector<float>> GetFloats(std::string_view key) const override {
    KV_ASSIGN_OR_RETURN(const MetadataValue* value, Find(key));
    std::vector<float> numbers;
    if (!value->is_array) return WrongType(key, "array of floating-point numbers");
    for (uint64_t i = 0; i < value->count; ++i) {
      const uint64_t step = FixedSize(value->type);
      const auto number = AsFloat(value->type, value->bytes.data() + i * step);
      if (!number) return WrongType(key, "array of floating-point numbers");
      numbers.push_back(static_cast<float>(*number));
    }
    return numbers;
  }

  Result<TensorView> GetTensor(std::string_view name) const override {
    const auto found = index_.tensor_by_name.find(name);
    if (found == index_.tensor_by_name.end()) {
      return Status(Code::kNotFound, "the model has no tensor '" + std::string(name) + "'");
    }
    return index_.tensors[found->second];
  }

  std::span<const TensorView> tensors() const override { return index_.tensors; }

  const std::string& sha256_hex() const override {
    std::call_once(digest_once_, [this] {
      static constexpr char kHex[] = "0123456789abcdef";
      for (const uint8_t byte : kv::Sha256(memory_.empty() ? mapping_.bytes() : memory_)) {
        digest_hex_ += kHex[byte >> 4];
        digest_hex_ += kHex[byte & 15];
      }
    });
    return digest_hex_;
  }

 private:
  Result<const MetadataValue*> Find(std::string_view key) const {
    const auto found = index_.metadata.find(key);
    if (found == index_.metadata.end()) {
      return Status(Code::kNotFound, "GGUF metadata '" + std::string(key) + "' is absent");
    }
    return &found->second;
  }

  const Mapping mapping_;
  const std::vector<uint8_t> memory_;
  const GgufIndex index_;

  mutable std::once_flag digest_once_;
  mutable std::string digest_hex_;
};

}  // namespace

Result<std::unique_ptr<GgufFile>> GgufFile::Open(const std::string& path) {
  KV_ASSIGN_OR_RETURN(Mapping mapping, MapFile(path));
  Result<GgufIndex> index = ParseGguf(mapping.bytes());
  if (!index.ok()) {
    return Status(index.code(), "model file '" + path + "': " + index.status().message());
  }
  return std::unique_ptr<GgufFile>(std::make_unique<IndexedGguf>(
      std::move(mapping), std::vector<uint8_t>(), std::move(index).value()));
}

Result<std::unique_ptr<GgufFile>> GgufFile::Parse(std::vector<uint8_t> bytes) {
  KV_ASSIGN_OR_RETURN(GgufIndex index, ParseGguf(bytes));
  return std::unique_ptr<GgufFile>(
      std::make_unique<IndexedGguf>(Mapping(), std::move(bytes), std::move(index)));
}

}  // namespace cairn::engine
