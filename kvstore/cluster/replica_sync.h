// Makes the three replicas of each index group equal, where this node is the home: fills new ones,
// and brings together what replicas that were away, or homes before this one, have.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <unordered_set>
#include <vector>

#include "kvstore/base/log.h"
#include "kvstore/client/home_index.h"
#include "kvstore/cluster/home_groups.h"
#include "kvstore/control/node_report.h"
#include "kvstore/node/index_view.h"

namespace cairn::kv {

// Loop thread only. All parts must outlive it.
class ReplicaSync {
 public:
  struct Parts {
    Clock& clock;
    Log& log;
    HomeGroups& groups;
    HomeIndex& index;
    TargetSet& targets;
    const LocalTargets& own;
  };
  ReplicaSync(Parts parts, NodeId self) : parts_(parts), self_(self) {}

  // Compares all groups that are here, under `map`, with their other replicas; files on each what
  // it lacks, and counts that. Fails when some replica could not be asked: its groups are as they
  // were.
  Task<Status> Run(std::shared_ptr<const ClusterMap> map, uint64_t& filed);

  // Places of these groups that were said to be filling, and are full now: for the coordinator.
  const std::set<FilledPlace>& filled() const { return filled_; }
  // Forgets those that the map does not call filling any more.
  void ForgetFilled(const ClusterMap& map);

 private:
  using Stripes = std::unordered_set<StripeId, IdHash>;
  // What a replica has whose word does not count, and this one lacks.
  struct Foreign {
    TargetPort* port;
    StripeId stripe;
    uint32_t group;
  };
  // One other replica, and the groups that it shares with this node.
  struct Pair {
    TargetId other;
    std::set<uint32_t> groups;
  };

  std::vector<Pair> PairsOf(const ClusterMap& map) const;
  LocalTarget* OwnReplica(const ClusterMap& map, uint32_t group) const;
  Task<Status> Compare(const ClusterMap& map, const Pair& pair, uint64_t& filed);
  Task<Result<Stripes>> ListAt(const ClusterMap& map, const Pair& pair, TargetPort& port) const;
  // From there to here, and from here to there.
  Task<Status> Pull(const ClusterMap& map, const Pair& pair, TargetPort& port,
                    const Stripes& there, uint64_t& filed);
  static bool IsSource(const Group& group, TargetId other);
  Task<Status> DisownForeign(const std::set<uint32_t>& failed);
  Task<Status> Push(const ClusterMap& map, const Pair& pair, TargetPort& port,
                    const Stripes& there, uint64_t& filed);
  Task<bool> IsLost(const Manifest& manifest);
  Task<Status> PushOne(LocalTarget& from, TargetPort& to, StripeId stripe, uint64_t& filed);

  Parts parts_;
  const NodeId self_;
  std::set<FilledPlace> filled_;
  std::vector<Foreign> foreign_;  // Of the comparison under way.
};

}  // namespace cairn::kv
