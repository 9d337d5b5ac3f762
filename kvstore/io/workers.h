// The seam to other threads: run a blocking or heavy call elsewhere, and await it.
#pragma once

#include <functional>

#include "kvstore/async/task.h"

namespace cairn::kv {

class Workers {
 public:
  virtual ~Workers() = default;

  // Runs `call` on some other thread and returns when it is done. `call` must not touch anything
  // that the loop changes meanwhile. In simulation it runs inline and costs virtual time.
  virtual Task<void> Run(std::function<void()> call) = 0;
};

}  // namespace cairn::kv
