// Tells of hellos that failed, and counts them.
#pragma once

#include <cstdint>
#include <map>

#include "kvstore/base/log.h"
#include "kvstore/os/tcp_hello.h"

namespace cairn::kv {

class HelloComplaints {
 public:
  // Counters of whoever owns this.
  struct Tally {
    uint64_t& malformed;
    uint64_t& refused;
    uint64_t& unproven;
  };
  // `log` and the counters must outlive it.
  HelloComplaints(Log& log, Tally tally) : log_(log), tally_(tally) {}

  // Counts a hello that failed, and tells of it unless it has of this peer.
  void Note(NodeId peer, const HelloOutcome& outcome);

 private:
  Log& log_;
  const Tally tally_;
  std::map<NodeId, HelloOutcome::Kind> told_;
};

}  // namespace cairn::kv
