// How many requests of peers are read and answered at a time, and with how much memory.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>

#include "kvstore/async/semaphore.h"
#include "kvstore/async/task.h"
#include "kvstore/os/tcp_hello.h"

namespace cairn::kv {

// Calls with one peer on their way, each way.
inline constexpr uint32_t kCallsMax = 4096;
// What any one message may take, each way.
inline constexpr uint64_t kCallBytesMax = kMessageBodySizeMax + 2 * kMessagePayloadSizeMax;

// Loop thread only. First come, first served, of each peer as of all.
class RequestAdmission {
 public:
  // Of calls with payload; those without have a fixed budget of their own, so that they never wait
  // for memory that payloads hold.
  struct Limits {
    uint64_t source_bytes_max = 0;
    uint64_t bytes_max = 0;
  };
  struct Permits {
    Semaphore::Permit source_requests;
    Semaphore::Permit source_bytes;
    Semaphore::Permit requests;
    Semaphore::Permit bytes;
  };

  RequestAdmission(Loop& loop, Limits limits);

  // Remembers the peer. False when there are too many already.
  bool Knows(NodeId source);
  // Waits until a request that takes `bytes` in all, at most kCallBytesMax, may be read. Of a peer
  // that it knows.
  Task<Permits> Admit(NodeId source, ConnectionRole role, uint64_t bytes);

 private:
  struct Budget {
    Budget(Loop& loop, uint64_t bytes_max) : requests(loop, kCallsMax), bytes(loop, bytes_max) {}
    Semaphore requests;
    Semaphore bytes;
  };
  struct Budgets {
    Budgets(Loop& loop, uint64_t data_bytes_max);
    std::array<Budget, 2> of_role;
  };

  Loop& loop_;
  const Limits limits_;
  std::map<NodeId, std::unique_ptr<Budgets>> sources_;  // None is ever removed.
  Budgets all_;
};

}  // namespace cairn::kv
