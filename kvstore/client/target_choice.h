// Chooses the targets of a stripe and the index replicas of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "kvstore/base/random.h"
#include "kvstore/types/ids.h"

namespace cairn::kv {

struct TargetState {
  TargetId id;
  bool live = false;        // Takes writes: there, healthy.
  uint64_t free_bytes = 0;  // Or what reclaim could free soon.
  uint32_t queue = 0;       // Operations in flight.
};

// Loop thread only.
class TargetChooser {
 public:
  // `count` distinct live targets: those with the shortest queues, among about equal ones those
  // with the most room, so that all fill in step (decision 9). Nothing when fewer than `count`
  // live.
  std::optional<std::vector<TargetId>> Choose(std::span<const TargetState> targets, size_t count,
                                              Random& random);

 private:
  struct Candidate {
    TargetState state;
    bool is_due = false;
  };
  static bool IsBetter(const Candidate& a, const Candidate& b);

  // By target: how often in a row others were chosen. In a full store a target frees a segment when
  // it opens one; until then it may have a little less room than all others, for ever. So it is due
  // some time; but not where it has less than half of the most.
  std::unordered_map<uint64_t, size_t> passed_over_;
};

// All targets by descending rendezvous weight for the run: the first kIndexReplicas hold its index.
// A target that comes or goes moves only the runs that it gains or loses.
std::vector<TargetId> ReplicaOrder(const NamespaceId& space, const RunId& run,
                                   std::span<const TargetId> targets);

}  // namespace cairn::kv
