// What the halves of one RdmaNetwork share.
#pragma once

#include "kvstore/io/clock.h"
#include "kvstore/os/poller.h"
#include "kvstore/rdma/rdma_device.h"
#include "kvstore/rdma/rdma_events.h"
#include "kvstore/rdma/rdma_options.h"

namespace cairn::kv {

// References of one network's own; all outlive the two halves.
struct RdmaParts {
  Poller& poller;
  Clock& clock;
  Log& log;
  const RdmaNetworkOptions& options;
  const NodeIdentity& identity;
  RdmaNetworkStats& stats;
  RdmaEvents& events;
  RdmaDevices& devices;
};

}  // namespace cairn::kv
