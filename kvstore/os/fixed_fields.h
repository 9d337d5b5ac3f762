// Fields at fixed offsets, little-endian, for headers of one size.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace cairn::kv {

static_assert(std::endian::native == std::endian::little);

template <typename T>
void PutField(uint8_t* to, const T& value) {
  std::memcpy(to, &value, sizeof(value));
}

template <typename T>
T LoadField(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

}  // namespace cairn::kv
