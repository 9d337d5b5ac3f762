// The pool's hand-over: pieces are claimed from one counter and reported done in another.
#include "engine/compute/cpu/thread_pool.h"

#include "kvstore/base/check.h"

namespace cairn::engine {
namespace {

constexpr int kSpins = 2000;  // Some tens of microseconds.
constexpr uint64_t kCountMask = UINT32_MAX;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(uint32_t threads) {
  KV_CHECK(threads > 0);
  for (uint32_t thread = 1; thread < threads; ++thread) {
    workers_.emplace_back([this, thread] { Work(thread); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true);
  {
    const std::lock_guard lock(mutex_);
    wake_.notify_all();
  }
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::RunErased(uint32_t pieces, Call call, const void* self) {
  if (workers_.empty() || pieces < 2) {
    for (uint32_t piece = 0; piece < pieces; ++piece) call(self, piece, 0);
    return;
  }
  call_ = call;
  self_ = self;
  pieces_ = pieces;
  pieces_done_.store(0, std::memory_order_relaxed);
  const uint64_t loop = (unclaimed_.load(std::memory_order_relaxed) | kCountMask) + 1;
  unclaimed_.store(loop | pieces);  // Publishes all of the above.
  if (sleepers_.load() > 0) {
    const std::lock_guard lock(mutex_);
    wake_.notify_all();
  }
  TakePieces(0);
  for (int spins = 1; pieces_done_.load(std::memory_order_acquire) < pieces; ++spins) {
    Pause();
    if (spins % kSpins == 0) std::this_thread::yield();  // A worker has lost its core.
  }
}

void ThreadPool::TakePieces(uint32_t thread) {
  uint64_t unclaimed = unclaimed_.load(std::memory_order_acquire);
  while ((unclaimed & kCountMask) > 0) {
    if (!unclaimed_.compare_exchange_weak(unclaimed, unclaimed - 1, std::memory_order_acq_rel)) {
      continue;
    }
    call_(self_, pieces_ - static_cast<uint32_t>(unclaimed & kCountMask), thread);
    pieces_done_.fetch_add(1, std::memory_order_release);
    unclaimed = unclaimed_.load(std::memory_order_acquire);
  }
}

// Returns false when the pool ends.
bool ThreadPool::WaitForPieces() {
  const auto has_news = [this] { return (unclaimed_.load() & kCountMask) > 0 || stopping_.load(); };
  for (int spins = 0; spins < kSpins; ++spins) {
    if (has_news()) return !stopping_.load();
    Pause();
  }
  std::unique_lock lock(mutex_);
  sleepers_.fetch_add(1);
  wake_.wait(lock, has_news);
  sleepers_.fetch_sub(1);
  return !stopping_.load();
}

void ThreadPool::Work(uint32_t thread) {
  while (WaitForPieces()) TakePieces(thread);
}

}  // namespace cairn::engine
