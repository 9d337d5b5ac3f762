// Nodes on one transport, for tests over any Network: a new transport adds one line to Rigs().
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "kvstore/io/clock.h"
#include "kvstore/io/network.h"

namespace cairn::kv {

class NetworkRig {
 public:
  virtual ~NetworkRig() = default;

  virtual Loop& loop() = 0;
  virtual Clock& clock() = 0;
  // Made at the first call; nodes can reach each other from then on. Valid until it is killed.
  virtual Network& node(NodeId id) = 0;
  // The node's process is gone: its connections end, its handlers' answers go nowhere. The next
  // node(id) is the process that takes its place, at the same address.
  virtual void Kill(NodeId id) = 0;
  // Runs the world until `done` holds. A world in which it never will fails a check, or hangs.
  virtual void RunUntil(const std::function<bool()>& done) = 0;

  template <typename T>
  T Await(Task<T> task) {
    RunUntil([&task] { return task.done(); });
    return task.Take();
  }
  void RunFor(Nanos span) {
    Task<void> sleep = clock().SleepUntil(clock().Now() + span, nullptr);
    RunUntil([&sleep] { return sleep.done(); });
  }
};

struct RigKind {
  std::string name;
  std::function<std::unique_ptr<NetworkRig>()> make;  // Null: this machine has no such transport.

  // In the names of tests, for gtest.
  friend void PrintTo(const RigKind& kind, std::ostream* out) { *out << kind.name; }
};

std::unique_ptr<NetworkRig> MakeTcpRig(bool force_epoll, bool encrypted);
std::unique_ptr<NetworkRig> MakeSimRig();
// Null where there is no RDMA: CAIRN_RDMA_ADDRESSES names the ports, as tests/integration/rdma does
// in its virtual machine.
std::unique_ptr<NetworkRig> MakeRdmaRig();

// Every transport that the suite is for.
inline std::vector<RigKind> Rigs() {
  return {
      {"Tcp", [] { return MakeTcpRig(false, false); }},
      {"TcpOnEpoll", [] { return MakeTcpRig(true, false); }},
      {"TcpWithTls", [] { return MakeTcpRig(false, true); }},
      {"Simulated", [] { return MakeSimRig(); }},
      {"Rdma", [] { return MakeRdmaRig(); }},
  };
}

}  // namespace cairn::kv
