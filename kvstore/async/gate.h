// A Gate holds background tasks: nothing runs that cannot be stopped and waited for.
#pragma once

#include <cstddef>

#include "kvstore/async/event.h"
#include "kvstore/async/task.h"

namespace cairn::kv {

// Loop thread only. The destructor checks that the gate is empty.
class Gate {
 public:
  explicit Gate(Loop& loop) : emptied_(loop) {}
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { KV_CHECK(count_ == 0); }

  // Owns `task` until it is done. A check fails once the gate is closed.
  void Hold(Task<void> task);

  // Lets nothing more in, and resolves when the last task has left. Call it once.
  Task<void> Close();

  bool closed() const { return closed_; }
  size_t count() const { return count_; }

 private:
  void Leave();

  bool closed_ = false;
  size_t count_ = 0;
  Event emptied_;
};

}  // namespace cairn::kv
