// Decides who counts as there: the life of nodes and targets, by what was heard of them. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kvstore/base/time.h"
#include "kvstore/control/cluster_map.h"

namespace cairn::kv {

struct MembershipOptions {
  Nanos steady_after = Seconds(5);  // Heard of for so long: kJoining becomes kUp.
  Nanos lost_after = Seconds(600);  // Not heard of for so long: kSuspect becomes kLost.
  // Longer between two steps than this: time stood still for us, so nobody is blamed for it.
  Nanos stall_max = Seconds(5);
  // A new target's weight grows to full in ten steps, this long each.
  Nanos weight_step = Seconds(180);
};

struct SeenTarget {
  TargetId id;
  uint64_t capacity = 0;
  bool failed = false;  // Its node sees it, and cannot use it.
  bool operator==(const SeenTarget&) const = default;
};

// A node whose lease lives, as it says itself.
struct SeenNode {
  NodeEntry entry;  // But for its state and `draining`.
  std::vector<SeenTarget> targets;
  bool operator==(const SeenNode&) const = default;
};

struct Observation {
  Instant now;
  std::vector<SeenNode> nodes;
  // What somebody wants emptied. Of nodes: all their targets.
  std::vector<NodeId> draining_nodes = {};
  std::vector<TargetId> draining_targets = {};
};

// What became of a step, for people.
struct MembershipNews {
  bool stalled = false;       // This step only looked at the clock.
  bool breaker_open = false;  // Some are overdue, but too many at once to be believed.
  std::vector<std::string> refused = {};  // Nodes and targets that cannot be taken in, and why.
};

// Knows how long each member was or was not heard of; a new coordinator begins with a new one, so
// everybody has the whole time again. Deterministic: same steps, same outcome.
class Membership {
 public:
  explicit Membership(const MembershipOptions& options) : options_(options) {}

  // Brings `next.nodes` and `next.targets` up to date; changes of targets are as of next.epoch.
  // Never are more than a quarter of the nodes that have targets lost at once, nor more than a
  // quarter of the targets: while more are overdue, all of them stay suspect. To say that some of
  // them are gone for good, have them drained: what is draining does not count.
  MembershipNews Step(const Observation& seen, MapContent& next);

 private:
  // Since when, by the coordinator's clock.
  struct Times {
    std::optional<Instant> heard_since;
    std::optional<Instant> missing_since;
    std::optional<Instant> weight_since;
  };
  class Round;

  const MembershipOptions options_;
  std::optional<Instant> last_step_;
  std::map<NodeId, Times> nodes_;
  std::map<TargetId, Times> targets_;
};

}  // namespace cairn::kv
