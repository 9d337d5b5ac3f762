// Relations between settings that each are in range: what cannot work together is said before it
// starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvstore/base/status.h"
#include "kvstore/config/daemon_config.h"

namespace cairn::kv {

// Of the machine that is to run it. 0: unknown, not checked.
struct MachineFacts {
  uint64_t memory_bytes = 0;
};

// Memory that the store may take for itself, from the limits alone; tables of shards and runs come
// on top (kvstore/README.md).
uint64_t MemoryLimit(const DaemonConfig& config);

// kInvalid: the message has one line for each relation that does not hold, "key: what is wrong;
// what to do".
Status CheckConfig(const DaemonConfig& config, const MachineFacts& machine = {});

// What works, but is seldom meant. One line each.
std::vector<std::string> ConfigWarnings(const DaemonConfig& config);

}  // namespace cairn::kv
