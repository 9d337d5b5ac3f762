// Keeps buffers by size class, four classes to a doubling, so that they fit again.
#include "kvstore/client/buffer_pool.h"

#include <algorithm>
#include <bit>

namespace cairn::kv {
namespace {

constexpr uint64_t kClassMin = 64 * kKiB;

uint64_t ClassOf(uint64_t size, uint64_t bytes_max) {
  if (size <= kClassMin) return std::min(kClassMin, bytes_max);
  const uint64_t step = std::bit_floor(size) / 4;
  return std::min(AlignUp(size, step), bytes_max);
}

}  // namespace

BufferPool::BufferPool(Loop& loop, uint64_t bytes_max, PayloadMemory* network)
    : bytes_max_(AlignDown(bytes_max, kSectorSize)), network_(network), free_(loop, bytes_max_) {}

Task<BufferPool::Buffer> BufferPool::Take(uint64_t size) {
  KV_CHECK(size <= bytes_max_);
  const uint64_t class_size = ClassOf(size, bytes_max_);
  Semaphore::Permit permit = co_await free_.Acquire(class_size);
  in_use_ += class_size;
  const auto found = idle_.find(class_size);
  if (found != idle_.end()) {
    Memory memory = std::move(found->second);
    idle_.erase(found);
    idle_bytes_ -= class_size;
    co_return Buffer(this, std::move(memory), std::move(permit));
  }
  while (in_use_ + idle_bytes_ > bytes_max_) {
    idle_bytes_ -= idle_.begin()->first;
    idle_.erase(idle_.begin());
  }
  Memory memory;
  memory.bytes = Bytes(class_size);
  memory.known = KnownMemory(network_, memory.bytes.span());
  co_return Buffer(this, std::move(memory), std::move(permit));
}

void BufferPool::Return(Memory memory) {
  const uint64_t size = memory.bytes.size();
  in_use_ -= size;
  idle_bytes_ += size;
  idle_.emplace(size, std::move(memory));
}

void BufferPool::Buffer::Release() {
  if (pool_ == nullptr) return;
  std::exchange(pool_, nullptr)->Return(std::move(memory_));
  permit_.Release();
}

}  // namespace cairn::kv
