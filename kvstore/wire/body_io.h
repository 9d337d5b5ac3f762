// Reads or writes a body field by field: one list of fields per message serves both directions.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "kvstore/base/status.h"
#include "kvstore/types/little_endian.h"

namespace cairn::kv::wire {

class BodyWriter {
 public:
  static constexpr bool kReading = false;

  template <std::integral T>
  void Int(const T& value) {
    fields_.Add(static_cast<std::make_unsigned_t<T>>(value));
  }
  void Bool(const bool& value) { fields_.Add(static_cast<uint8_t>(value ? 1 : 0)); }
  template <typename E>
  void Enum(const E& value, E last) {
    Require(value <= last);
    fields_.Add(static_cast<uint8_t>(value));
  }
  void Id(const Id128& id) { fields_.AddId(id); }
  template <size_t N>
  void Fixed(const std::array<uint8_t, N>& bytes) {
    fields_.AddBytes(bytes);
  }
  void Text(const std::string& text, size_t size_max) {
    Require(text.size() <= size_max);
    fields_.Add(static_cast<uint32_t>(text.size()));
    fields_.AddBytes(AsBytes(text));
  }
  // A message for people: cut where it is too long.
  void Words(const std::string& text, size_t size_max) {
    const std::string_view kept = std::string_view(text).substr(0, size_max);
    fields_.Add(static_cast<uint16_t>(kept.size()));
    fields_.AddBytes(AsBytes(kept));
  }
  void Blob(ByteSpan bytes) {
    fields_.Add(static_cast<uint32_t>(bytes.size()));
    fields_.AddBytes(bytes);
  }
  // `item_size_min`: of one item's bytes.
  template <typename T, typename Each>
  void List(const std::vector<T>& items, size_t count_max, size_t item_size_min, Each each) {
    static_cast<void>(item_size_min);
    Require(items.size() <= count_max);
    fields_.Add(static_cast<uint32_t>(items.size()));
    for (const T& item : items) each(item);
  }
  void Require(bool holds) { fits_ = fits_ && holds; }

  bool fits() const { return fits_; }
  const std::vector<uint8_t>& bytes() const { return fields_.bytes(); }

 private:
  FieldWriter fields_;
  bool fits_ = true;
};

// After the first field that does not fit everything reads as zero and empty.
class BodyReader {
 public:
  static constexpr bool kReading = true;
  explicit BodyReader(ByteSpan body) : fields_(body) {}

  template <std::integral T>
  void Int(T& value) {
    value = static_cast<T>(fields_.Take<std::make_unsigned_t<T>>());
  }
  void Bool(bool& value) {
    const auto byte = fields_.Take<uint8_t>();
    Require(byte <= 1);
    value = byte == 1;
  }
  template <typename E>
  void Enum(E& value, E last) {
    const auto byte = fields_.Take<uint8_t>();
    Require(byte <= static_cast<uint8_t>(last));
    if (fits()) value = static_cast<E>(byte);
  }
  void Id(Id128& id) { id = fields_.TakeId(); }
  template <size_t N>
  void Fixed(std::array<uint8_t, N>& bytes) {
    const ByteSpan taken = fields_.TakeBytes(N);
    std::copy(taken.begin(), taken.end(), bytes.begin());
  }
  void Text(std::string& text, size_t size_max) {
    const auto size = fields_.Take<uint32_t>();
    Require(size <= size_max);
    if (fits()) text = AsText(fields_.TakeBytes(size));
  }
  void Words(std::string& text, size_t size_max) {
    const auto size = fields_.Take<uint16_t>();
    Require(size <= size_max);
    if (fits()) text = AsText(fields_.TakeBytes(size));
  }
  ByteSpan Blob() {
    const auto size = fields_.Take<uint32_t>();
    return fields_.TakeBytes(size);
  }
  template <typename T, typename Each>
  void List(std::vector<T>& items, size_t count_max, size_t item_size_min, Each each) {
    const auto count = fields_.Take<uint32_t>();
    Require(count <= count_max && count <= fields_.rest() / std::max<size_t>(item_size_min, 1));
    if (!fits()) return;
    items.resize(count);
    for (T& item : items) each(item);
  }
  void Require(bool holds) { holds_ = holds_ && holds; }

  bool fits() const { return holds_ && fields_.fits(); }
  // Every byte was a field, and every field held.
  bool whole() const { return fits() && fields_.rest() == 0; }

 private:
  FieldReader fields_;
  bool holds_ = true;
};

// A message as `Io` wants it: to be filled, or to be read.
template <typename Io, typename T>
using For = std::conditional_t<Io::kReading, T, const T>;

}  // namespace cairn::kv::wire
