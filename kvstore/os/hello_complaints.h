// Tells of hellos that failed, and counts them.
#pragma once

#include <map>

#include "kvstore/base/log.h"
#include "kvstore/io/network_stats.h"
#include "kvstore/os/tcp_hello.h"

namespace cairn::kv {

class HelloComplaints {
 public:
  // Both must outlive it.
  HelloComplaints(Log& log, NetworkStats& stats) : log_(log), stats_(stats) {}

  // Counts a hello that failed, and tells of it unless it has of this peer.
  void Note(NodeId peer, const HelloOutcome& outcome);

 private:
  Log& log_;
  NetworkStats& stats_;
  std::map<NodeId, HelloOutcome::Kind> told_;
};

}  // namespace cairn::kv
