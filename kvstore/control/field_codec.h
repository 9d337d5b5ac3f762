// Fields of the control store's records: numbers in as few bytes as they need, texts, a seal.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "kvstore/base/checksum.h"

namespace cairn::kv {

class FieldEncoder {
 public:
  void Byte(uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  // LEB128: seven bits a byte, the lowest first.
  void Number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) Byte(static_cast<uint8_t>(value | 0x80));
    Byte(static_cast<uint8_t>(value));
  }
  template <typename T>
  void Fixed(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) {
      Byte(static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i)));
    }
  }
  void Text(std::string_view text) {
    Number(text.size());
    bytes_.append(text);
  }
  // The XXH3-64 of all that is before it.
  void Seal() { Fixed(Checksum(AsBytes(bytes_))); }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// After the first field that is not as it should be, fits() is false and all fields are zero.
class FieldDecoder {
 public:
  explicit FieldDecoder(std::string_view bytes) : rest_(bytes) {}

  uint8_t Byte() {
    const std::string_view byte = Take(1);
    return byte.empty() ? uint8_t{0} : static_cast<uint8_t>(byte[0]);
  }
  // Does not fit when it is above what T can hold.
  template <typename T>
  T Number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = Byte();
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte >= 0x80) continue;
      return value <= std::numeric_limits<T>::max() ? static_cast<T>(value) : Bad<T>();
    }
    return Bad<T>();
  }
  // The size of a list that follows.
  uint32_t Count(uint32_t max) {
    const auto count = Number<uint32_t>();
    return count <= max ? count : Bad<uint32_t>();
  }
  template <typename T>
  T Fixed() {
    uint64_t value = 0;
    const std::string_view field = Take(sizeof(T));
    for (size_t i = 0; i < field.size(); ++i) {
      value |= uint64_t{static_cast<uint8_t>(field[i])} << (8 * i);
    }
    return static_cast<T>(value);
  }
  std::string_view View(uint64_t size_max) {
    const auto size = Number<uint64_t>();
    return size <= size_max ? Take(size) : Take(SIZE_MAX);
  }
  std::string Text(uint64_t size_max) { return std::string(View(size_max)); }
  // Takes the seal off the end. False, and nothing more fits, when it is broken.
  bool Unseal() {
    if (rest_.size() < sizeof(uint64_t)) return Bad<bool>();
    const std::string_view body = rest_.substr(0, rest_.size() - sizeof(uint64_t));
    rest_.remove_prefix(body.size());
    if (Fixed<uint64_t>() != Checksum(AsBytes(body))) return Bad<bool>();
    rest_ = body;
    return true;
  }

  bool fits() const { return fits_; }
  // All was there, and nothing more.
  bool whole() const { return fits_ && rest_.empty(); }

 private:
  std::string_view Take(uint64_t size) {
    if (size > rest_.size()) {
      Bad<bool>();
      return {};
    }
    const std::string_view field = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return field;
  }
  template <typename T>
  T Bad() {
    fits_ = false;
    rest_ = {};
    return T{};
  }

  std::string_view rest_;
  bool fits_ = true;
};

}  // namespace cairn::kv
