// A fixed number of threads that run calls in the order in which they came.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cairn::kv {

class ThreadPool {
 public:
  explicit ThreadPool(uint32_t threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  // Runs what is queued, then ends.
  ~ThreadPool();

  // From any thread.
  void Run(std::function<void()> call);

 private:
  void Work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> calls_;  // Protected by mutex_.
  bool stopping_ = false;                    // Protected by mutex_.
  std::vector<std::thread> threads_;
};

}  // namespace cairn::kv
