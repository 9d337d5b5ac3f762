// A bounded pool of aligned buffers, for parity, copies and rebuilt bytes.
#pragma once

#include <cstdint>
#include <map>

#include "kvstore/async/semaphore.h"
#include "kvstore/async/task.h"
#include "kvstore/base/bytes.h"
#include "kvstore/io/payload_memory.h"

namespace cairn::kv {

// Loop thread only. Must outlive its buffers.
class BufferPool {
 public:
  // `network` must outlive it, and is told of its buffers; null: no network moves them.
  BufferPool(Loop& loop, uint64_t bytes_max, PayloadMemory* network = nullptr);
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  struct Memory {
    Bytes bytes;
    KnownMemory known;
  };
  // Goes back to the pool when it goes out of scope.
  class Buffer {
   public:
    Buffer() = default;
    Buffer(BufferPool* pool, Memory memory, Semaphore::Permit permit)
        : pool_(pool), memory_(std::move(memory)), permit_(std::move(permit)) {}
    Buffer(Buffer&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)),
          memory_(std::move(other.memory_)),
          permit_(std::move(other.permit_)) {}
    Buffer& operator=(Buffer&& other) noexcept {
      Release();
      pool_ = std::exchange(other.pool_, nullptr);
      memory_ = std::move(other.memory_);
      permit_ = std::move(other.permit_);
      return *this;
    }
    ~Buffer() { Release(); }
    // At least as large as asked for. What it holds at first means nothing.
    MutableByteSpan span() { return memory_.bytes.span(); }

   private:
    void Release();
    BufferPool* pool_ = nullptr;
    Memory memory_;
    Semaphore::Permit permit_;
  };

  // Waits its turn. `size` is at most largest(). Never take a second buffer while holding one.
  Task<Buffer> Take(uint64_t size);

  uint64_t largest() const { return bytes_max_; }
  // Bytes of memory held, in use or idle. Never above the limit.
  uint64_t memory_bytes() const { return in_use_ + idle_bytes_; }

 private:
  void Return(Memory memory);

  const uint64_t bytes_max_;
  PayloadMemory* const network_;
  Semaphore free_;
  uint64_t in_use_ = 0;
  uint64_t idle_bytes_ = 0;
  std::multimap<uint64_t, Memory> idle_;  // By size.
};

}  // namespace cairn::kv
