// Views of bytes, and one owning buffer aligned for direct I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "kvstore/base/check.h"
#include "kvstore/base/units.h"

namespace cairn::kv {

using ByteSpan = std::span<const uint8_t>;
using MutableByteSpan = std::span<uint8_t>;

// What O_DIRECT asks of memory, offsets and sizes on every device that we support.
inline constexpr uint64_t kSectorSize = 4096;

inline ByteSpan AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
inline std::string_view AsText(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A move-only buffer whose memory starts on a sector boundary and whose capacity is a whole number
// of sectors. Bytes past size() exist up to capacity() and are zero when the buffer is made.
class Bytes {
 public:
  Bytes() = default;

  // All zero. Out of memory crashes.
  explicit Bytes(size_t size) : Bytes(size, 0) {}

  // For what is about to be overwritten: only the bytes past size() are zero, the others anything.
  static Bytes Unfilled(size_t size) { return Bytes(size, size); }

  static Bytes CopyOf(ByteSpan source) {
    Bytes copy = Unfilled(source.size());
    if (!source.empty()) std::memcpy(copy.data(), source.data(), source.size());
    return copy;
  }

  Bytes(Bytes&& other) noexcept
      : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}
  Bytes& operator=(Bytes&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  uint8_t* data() { return data_.get(); }
  const uint8_t* data() const { return data_.get(); }
  size_t size() const { return size_; }
  size_t capacity() const { return AlignUp(size_, kSectorSize); }
  bool empty() const { return size_ == 0; }

  MutableByteSpan span() { return {data_.get(), size_}; }
  ByteSpan span() const { return {data_.get(), size_}; }
  // Whole sectors, for a Disk.
  MutableByteSpan sectors() { return {data_.get(), capacity()}; }
  ByteSpan sectors() const { return {data_.get(), capacity()}; }

 private:
  Bytes(size_t size, size_t zero_from) : size_(size) {
    if (capacity() == 0) return;
    data_.reset(static_cast<uint8_t*>(std::aligned_alloc(kSectorSize, capacity())));
    KV_CHECK(data_ != nullptr);
    std::memset(data_.get() + zero_from, 0, capacity() - zero_from);
  }

  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  std::unique_ptr<uint8_t, Free> data_;
  size_t size_ = 0;
};

}  // namespace cairn::kv
