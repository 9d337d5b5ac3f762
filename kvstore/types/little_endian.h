// Little-endian fields one after another, for formats: a writer that grows, a reader that checks.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "kvstore/base/bytes.h"
#include "kvstore/types/ids.h"

namespace cairn::kv {

class FieldWriter {
 public:
  template <typename T>
  void Add(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) {
      bytes_.push_back(static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i)));
    }
  }
  void AddId(const Id128& id) {
    Add(id.high);
    Add(id.low);
  }
  void AddBytes(ByteSpan bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

  const std::vector<uint8_t>& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }

 private:
  std::vector<uint8_t> bytes_;
};

// After the first field that does not fit, fits() is false and all fields are zero.
class FieldReader {
 public:
  explicit FieldReader(ByteSpan bytes) : rest_(bytes) {}

  template <typename T>
  T Take() {
    uint64_t value = 0;
    const ByteSpan field = TakeBytes(sizeof(T));
    for (size_t i = 0; i < field.size(); ++i) value |= uint64_t{field[i]} << (8 * i);
    return static_cast<T>(value);
  }
  Id128 TakeId() {
    const auto high = Take<uint64_t>();
    const auto low = Take<uint64_t>();
    return {high, low};
  }
  ByteSpan TakeBytes(size_t size) {
    if (size > rest_.size()) {
      fits_ = false;
      rest_ = {};
      return {};
    }
    const ByteSpan field = rest_.first(size);
    rest_ = rest_.subspan(size);
    return field;
  }

  bool fits() const { return fits_; }
  size_t rest() const { return rest_.size(); }

 private:
  ByteSpan rest_;
  bool fits_ = true;
};

}  // namespace cairn::kv
