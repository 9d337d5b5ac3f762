// The seam to other nodes: a request, an answer, a deadline.
#pragma once

#include <cstdint>
#include <functional>

#include "kvstore/async/task.h"
#include "kvstore/base/bytes.h"
#include "kvstore/base/result.h"
#include "kvstore/base/time.h"

namespace cairn::kv {

struct NodeId {
  uint32_t value = 0;
  auto operator<=>(const NodeId&) const = default;
};

// Messages may be lost, late, reordered or repeated, but never altered. Loop thread only.
class Network {
 public:
  virtual ~Network() = default;

  // Sends `request` and returns the peer's answer, or kUnavailable when the peer cannot be reached,
  // or kDeadline. After a failure the peer may or may not have acted on the request.
  virtual Task<Result<Bytes>> Call(NodeId target, Bytes request, Instant deadline) = 0;

  using Handler = std::function<Task<Bytes>(NodeId source, Bytes request)>;
  // Answers calls to this node from now on. Set once; the handler must outlive the network.
  virtual void Serve(Handler handler) = 0;
};

// The largest request or answer, in bytes: larger ones are refused with kInvalid before sending.
inline constexpr uint64_t kMessageSizeMax = 72 * kMiB;

}  // namespace cairn::kv
