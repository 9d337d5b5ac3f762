// Workers on a fixed pool of threads.
#pragma once

#include <cstdint>
#include <functional>

#include "kvstore/async/semaphore.h"
#include "kvstore/io/workers.h"
#include "kvstore/os/poller.h"
#include "kvstore/os/thread_pool.h"

namespace cairn::kv {

// Loop thread only. Every call must be awaited before it is destroyed.
class ThreadWorkers final : public Workers {
 public:
  // `poller` (whose loop it is that goes on) must outlive this.
  ThreadWorkers(Poller& poller, uint32_t threads);

  Task<void> Run(std::function<void()> call) override;

 private:
  Poller& poller_;
  Semaphore places_;  // In the queue of the pool; whoever finds none waits on the loop.
  ThreadPool pool_;
};

}  // namespace cairn::kv
