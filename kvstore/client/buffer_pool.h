// A bounded pool of aligned buffers, for parity, copies and rebuilt bytes.
#pragma once

#include <cstdint>
#include <map>

#include "kvstore/async/semaphore.h"
#include "kvstore/async/task.h"
#include "kvstore/base/bytes.h"

namespace cairn::kv {

// Loop thread only. Must outlive its buffers.
class BufferPool {
 public:
  BufferPool(Loop& loop, uint64_t bytes_max);
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // Goes back to the pool when it goes out of scope.
  class Buffer {
   public:
    Buffer() = default;
    Buffer(BufferPool* pool, Bytes bytes, Semaphore::Permit permit)
        : pool_(pool), bytes_(std::move(bytes)), permit_(std::move(permit)) {}
    Buffer(Buffer&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)),
          bytes_(std::move(other.bytes_)),
          permit_(std::move(other.permit_)) {}
    Buffer& operator=(Buffer&& other) noexcept {
      Release();
      pool_ = std::exchange(other.pool_, nullptr);
      bytes_ = std::move(other.bytes_);
      permit_ = std::move(other.permit_);
      return *this;
    }
    ~Buffer() { Release(); }
    // At least as large as asked for. What it holds at first means nothing.
    MutableByteSpan span() { return bytes_.span(); }

   private:
    void Release();
    BufferPool* pool_ = nullptr;
    Bytes bytes_;
    Semaphore::Permit permit_;
  };

  // Waits its turn. `size` is at most largest(). Never take a second buffer while holding one.
  Task<Buffer> Take(uint64_t size);

  uint64_t largest() const { return bytes_max_; }
  // Bytes of memory held, in use or idle. Never above the limit.
  uint64_t memory_bytes() const { return in_use_ + idle_bytes_; }

 private:
  void Return(Bytes bytes);

  const uint64_t bytes_max_;
  Semaphore free_;
  uint64_t in_use_ = 0;
  uint64_t idle_bytes_ = 0;
  std::multimap<uint64_t, Bytes> idle_;  // By size.
};

}  // namespace cairn::kv
