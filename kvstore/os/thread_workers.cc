// Posts each completion back to the loop.
#include "kvstore/os/thread_workers.h"

#include "kvstore/async/event.h"

namespace cairn::kv {
namespace {

constexpr uint64_t kQueuedMax = 1024;

}  // namespace

ThreadWorkers::ThreadWorkers(Poller& poller, uint32_t threads)
    : poller_(poller), places_(poller.loop(), kQueuedMax), pool_(threads) {}

Task<void> ThreadWorkers::Run(std::function<void()> call) {
  const Semaphore::Permit place = co_await places_.Acquire(1);
  Loop& loop = poller_.loop();
  Event done(loop);
  poller_.BeginSoon();
  pool_.Run([&call, &done, &loop] {
    call();
    // After this Post the frame may be gone: `loop` is the only thing that may still be used.
    loop.Post([&done] { done.Set(); });
  });
  co_await done;
  poller_.EndSoon();
}

}  // namespace cairn::kv
