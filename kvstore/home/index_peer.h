// A call to another node's HomeService: what RemoteIndex needs of the network.
#pragma once

#include "kvstore/async/task.h"
#include "kvstore/base/bytes.h"
#include "kvstore/base/result.h"
#include "kvstore/io/network.h"

namespace cairn::kv {

// Loop thread only.
class IndexPeer {
 public:
  virtual ~IndexPeer() = default;
  // What HomeService::Answer of that node returns. kUnavailable or kDeadline otherwise: then the
  // node may have acted on the request or not.
  virtual Task<Result<Bytes>> Call(NodeId home, Bytes request, Instant deadline) = 0;
};

}  // namespace cairn::kv
