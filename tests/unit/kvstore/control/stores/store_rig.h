// A control store in its world, for the suite that all of them pass.
#pragma once

#include <functional>
#include <memory>

#include "kvstore/control/control_store.h"
#include "kvstore/io/clock.h"

namespace cairn::kv {

class StoreRig {
 public:
  virtual ~StoreRig() = default;
  virtual ControlStore& store() = 0;
  virtual Clock& clock() = 0;
  virtual Loop& loop() = 0;
  // Runs the world until then.
  virtual void RunUntil(const std::function<bool()>& done) = 0;

  // The store answers nothing, or answers again. False where that cannot be.
  virtual bool SetAway(bool away) = 0;

  template <typename T>
  T Await(Task<T> task) {
    RunUntil([&task] { return task.done(); });
    return task.Take();
  }
  Instant In(int64_t seconds) { return clock().Now() + Seconds(seconds); }
};

std::unique_ptr<StoreRig> NewFileRig();
std::unique_ptr<StoreRig> NewSimRig();
// Starts an etcd of its own on loopback. Null when Debian's etcd-server is not installed.
std::unique_ptr<StoreRig> NewEtcdRig();

}  // namespace cairn::kv
