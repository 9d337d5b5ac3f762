// What people ask of the cluster: that a node or a target be emptied, or not after all.
#pragma once

#include "kvstore/control/control_keys.h"
#include "kvstore/control/control_store.h"

namespace cairn::kv {

enum class Draining : uint8_t { kNo, kYes };

// The coordinator sees it in its next step. Of a member that is gone for good it also says that a
// person knows: the circuit breaker does not hold it any more.
Task<Status> SetDraining(ControlStore& store, ControlKeys keys, NodeId node, Draining wanted,
                         Instant deadline);
Task<Status> SetDraining(ControlStore& store, ControlKeys keys, TargetId target, Draining wanted,
                         Instant deadline);

}  // namespace cairn::kv
