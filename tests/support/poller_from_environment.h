// CAIRN_POLLER chooses the engine of a whole test program; ctest's cases labelled epoll set it.
#pragma once

#include <cstdlib>

#include "kvstore/os/poller.h"

namespace cairn::kv {

// kAuto when the variable is not set; ends the program when it names no engine.
inline PollerOptions PollerFromEnvironment() {
  PollerOptions options;
  const char* name = std::getenv("CAIRN_POLLER");
  if (name != nullptr) options.engine = ParsePollerEngine(name).value();
  return options;
}

}  // namespace cairn::kv
