// Runs many steps, a bounded number of them side by side.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kvstore/async/task.h"
#include "kvstore/base/status.h"

namespace cairn::kv {

namespace internal {

template <typename Step>
Task<Status> RunLane(uint64_t& next, uint64_t count, Step& step) {
  while (next < count) {
    Status done = co_await step(next++);
    if (done.ok()) continue;
    next = count;  // The other lanes end too.
    co_return done;
  }
  co_return Status();
}

}  // namespace internal

// Awaits step(i), a Task<Status>, for each i below `count`: begun in order, at most `lanes` at a
// time. After a failure none is begun, and the first one by lane is returned when those in flight
// have ended. `step` must live until the task is done: give it a name. Loop thread only.
template <typename Step>
Task<Status> RunInLanes(uint64_t count, uint64_t lanes, Step& step) {
  uint64_t next = 0;
  std::vector<Task<Status>> running;
  for (uint64_t i = 0; i < std::min(lanes, count); ++i) {
    running.push_back(internal::RunLane(next, count, step));
  }
  Status outcome;
  for (Task<Status>& lane : running) {
    Status ended = co_await lane;
    if (outcome.ok()) outcome = std::move(ended);
  }
  co_return outcome;
}

}  // namespace cairn::kv
