// Which targets are too slow to hold a part of the index, by what nodes say of each other. Pure.
//
// A node whose link or disk is slow still answers, so that nobody expires it; but whoever looks up
// or puts a run whose home or replica it is waits for it (docs/decisions/0023).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kvstore/base/time.h"
#include "kvstore/control/cluster_map.h"

namespace cairn::kv {

// What one node has seen of the targets that it asks (Pace, kvstore/client).
struct SlowReport {
  NodeId by;
  uint32_t asked = 0;                // Targets, lately: of the others it knows nothing.
  std::vector<TargetId> slow = {};   // Of these.
};

struct SlowTargetOptions {
  Nanos after = Seconds(15);  // Slow without a break for so long.
  Nanos hold = Seconds(600);  // Stays so for this long after it was last found slow.
};

// Deterministic: same steps, same outcome.
class SlowTargets {
 public:
  explicit SlowTargets(const SlowTargetOptions& options) : options_(options) {}

  // `reports` are of the nodes that know how fast others are. A target is found slow when more
  // nodes say so, its own not counted, than half of those that have asked a target on average; and
  // two at least, where so many report. Targets of at most a sixth of the nodes that
  // take new shards are named, or of one: those that were named first. Beyond that slowness is
  // ordinary, and to move the index would help nobody.
  void Step(Instant now, std::span<const SlowReport> reports, const MapContent& content);

  // For a new coordinator: what the one before had named, last found slow now.
  void Adopt(Instant now, std::span<const TargetId> named);

  // The steps stood still, and reports with them: what is slow has to be found so anew.
  void NoteStall();

  const std::set<TargetId>& named() const { return named_; }

 private:
  struct Times {
    std::optional<Instant> since;  // Found slow in each step from then on.
    Instant last;                  // Found slow.
  };

  const SlowTargetOptions options_;
  std::map<TargetId, Times> times_;
  std::set<TargetId> named_;
};

}  // namespace cairn::kv
