// A few threads that share out the pieces of one loop at a time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace cairn::engine {

// Run() is called by one thread at a time. Workers spin for a moment between loops, since the next
// one follows within microseconds during a step, and then sleep, since the cores are shared.
class ThreadPool {
 public:
  // `threads` counts the caller of Run; at least 1.
  explicit ThreadPool(uint32_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Calls body(piece, thread) once for every piece below `pieces`, in any order and on any thread,
  // and returns when all calls have. `thread` is below threads().
  template <typename Body>
  void Run(uint32_t pieces, const Body& body) {
    RunErased(
        pieces,
        [](const void* self, uint32_t piece, uint32_t thread) {
          (*static_cast<const Body*>(self))(piece, thread);
        },
        &body);
  }

  uint32_t threads() const { return static_cast<uint32_t>(workers_.size()) + 1; }

 private:
  using Call = void (*)(const void* self, uint32_t piece, uint32_t thread);

  void RunErased(uint32_t pieces, Call call, const void* self);
  void Work(uint32_t thread);
  bool WaitForPieces();
  void TakePieces(uint32_t thread);

  // Of the loop that runs. Read only by a thread that has claimed a piece: until it has done that
  // piece, Run cannot return, and so cannot change them.
  Call call_ = nullptr;
  const void* self_ = nullptr;
  uint32_t pieces_ = 0;

  // High half: number of the loop; low half: pieces not claimed yet. A worker that wakes late finds
  // none, and nobody has waited for it.
  std::atomic<uint64_t> unclaimed_{0};
  std::atomic<uint32_t> pieces_done_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<uint32_t> sleepers_{0};
  std::mutex mutex_;  // Guards nothing but the sleep.
  std::condition_variable wake_;
  std::vector<std::thread> workers_;
};

}  // namespace cairn::engine
