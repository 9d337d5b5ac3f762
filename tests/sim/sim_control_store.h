// A simulated control store: slow, away, deaf; answers that are lost, requests that come too late.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "kvstore/base/random.h"
#include "kvstore/control/control_state.h"
#include "kvstore/control/control_store.h"
#include "kvstore/io/clock.h"
#include "tests/sim/sim_clock.h"

namespace cairn::sim {

// Chances are out of a million, per call.
struct ControlFaults {
  uint32_t request_lost = 0;
  uint32_t answer_lost = 0;  // It happened, and nobody hears of it.
  uint32_t request_late = 0;  // It happens up to ten seconds later: long after the caller gave up.
};

class SimControl {
 public:
  SimControl(SimClock& clock, uint64_t seed);
  ~SimControl();

  // As node `id` reaches it, by that node's own clock. Lives as long as this.
  kv::ControlStore& ClientOf(uint32_t id, kv::Clock& node_clock);
  // A node that is cut off reaches nothing; its requests that are late still arrive.
  void Cut(uint32_t id) { cuts_[id] = true; }
  void Heal(uint32_t id) { cuts_[id] = false; }

  // No call is answered, and no lease runs out...
  void GoDown() { down_ = true; }
  enum class Leases : uint8_t {
    kRenewed,  // As when etcd elects a new leader.
    kRunOut,   // As if it had been there all the time, and only unreachable.
  };
  void ComeBack(Leases leases);
  bool down() const { return down_; }

  void SetFaults(const ControlFaults& faults) { faults_ = faults; }

  // Called after each transaction that succeeded, with who sent it.
  using OnCommit = std::function<void(uint32_t id, const kv::Transaction& transaction)>;
  void SetOnCommit(OnCommit on_commit) { on_commit_ = std::move(on_commit); }
  // As of now.
  kv::ControlState& state();

 private:
  class Client;

  kv::Nanos Latency();
  bool Reaches(uint32_t id) { return !down_ && !cuts_[id]; }

  SimClock& clock_;
  kv::Random random_;
  kv::ControlState state_;
  bool down_ = false;
  std::map<uint32_t, bool> cuts_;
  ControlFaults faults_;
  OnCommit on_commit_;
  std::map<uint32_t, std::unique_ptr<Client>> clients_;
};

}  // namespace cairn::sim
