// A node's place in a cluster: it joins, follows the map, serves its targets and its runs to the
// others, and gives its own store theirs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kvstore/cluster/control_admin.h"
#include "kvstore/cluster/control_spaces.h"
#include "kvstore/cluster/duties.h"
#include "kvstore/cluster/far_targets.h"
#include "kvstore/cluster/former_replicas.h"
#include "kvstore/cluster/home_groups.h"
#include "kvstore/cluster/node_links.h"
#include "kvstore/cluster/node_map.h"
#include "kvstore/cluster/replica_sync.h"
#include "kvstore/control/agent.h"
#include "kvstore/control/cluster_view.h"
#include "kvstore/control/coordinator.h"
#include "kvstore/home/home_service.h"
#include "kvstore/home/index_peer.h"
#include "kvstore/home/map_homes.h"
#include "kvstore/home/map_placement.h"
#include "kvstore/home/remote_index.h"
#include "kvstore/node/surroundings.h"
#include "kvstore/peer/peer_service.h"

namespace cairn::kv {

struct ClusterOptions {
  AgentOptions agent;  // With the cluster's name, and this node's name, rack and addresses.
  ClusterShape shape;  // Of a cluster that is made now; of an older one group_bits must agree.
  MembershipOptions membership;
  TenureOptions tenure;  // node_lease is the agent's.
  uint64_t repair_bytes_per_second = 256 * kMiB;
  SlowTargetOptions slow;
  uint16_t protocol_max = peer::kVersion;  // What this node speaks, at most; one at least.
  // For the control store to answer, for another process of this name to end, for a map with us.
  Nanos join_timeout = Seconds(60);
};

// Loop thread only. Everything in Parts must outlive it, and it the node.
class ClusterMember final : public Surroundings {
 public:
  struct Parts {
    Loop& loop;
    Clock& clock;
    Random& random;
    Log& log;
    ControlStore& control;
    NodeLinks& links;
  };
  ClusterMember(Parts parts, ClusterOptions options);
  ~ClusterMember() override;

  ClusterView view() const;
  ClusterAdmin& admin() { return admin_; }

  // kUnavailable: the control store, or a map, is not to be had. kConflict: the name is taken.
  // kInvalid: the cluster was made otherwise than the options say.
  Task<Status> Join(const LocalTargets& own) override;
  TargetSet& targets() override { return *set_; }
  Placement& placement() override { return *placement_; }
  const HomeTenure& tenure() override { return *groups_; }
  SpaceStore& space_store() override { return spaces_; }
  PayloadMemory* payload_memory() override { return parts_.links.payload_memory(); }
  StripeIndex& IndexOver(Home& home) override;
  void Begin(Served served) override;
  bool sole() const override { return false; }
  Task<Status> RepairIndex(uint64_t& filed) override;
  Task<void> Leave() override;
  Task<void> Close() override;

 private:
  void TellSetAside(ClusterView& view) const;

  // Asks homes through the network.
  class Peers final : public IndexPeer {
   public:
    explicit Peers(PeerCaller& caller) : caller_(caller) {}
    Task<Result<Bytes>> Call(NodeId home, Bytes request, Instant deadline) override {
      return caller_.AskHome(home, std::move(request), deadline);
    }

   private:
    PeerCaller& caller_;
  };

  Task<Status> StartAgent();
  Task<Status> OpenNetwork();
  Task<Status> AwaitMap();
  void MakeParts();
  Task<void> Abandon();
  TargetPort* FindOwn(TargetId id) const;
  void Follow();
  void SetPeers(const ClusterMap& map);
  std::vector<TargetPort*> PortsOf(const ClusterMap& map);
  // Whether some replica of a group that is here may lack something under the new map.
  bool MustCompare(const ClusterMap& before, const ClusterMap& map) const;
  Task<void> KeepReporting();
  Task<void> KeepClean();
  void Report();
  Task<void> LearnUsage();

  const Parts parts_;
  ClusterOptions options_;
  const LocalTargets* own_ = nullptr;
  NodeMap map_;
  std::shared_ptr<const ClusterMap> followed_;  // The last map that all parts were told of.
  ControlSpaces spaces_;
  ControlAdmin admin_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<Coordinator> coordinator_;
  Network* network_ = nullptr;  // Null until it is open.
  std::map<NodeId, std::vector<std::string>> addresses_;  // That the links were told of.
  std::unique_ptr<PeerCaller> caller_;
  std::unique_ptr<PeerService> service_;
  std::unique_ptr<FarTargets> far_;
  std::unique_ptr<MapHomes> homes_;
  std::unique_ptr<HomeGroups> groups_;
  std::unique_ptr<TargetSet> set_;
  std::unique_ptr<MapPlacement> placement_;
  std::unique_ptr<Peers> peers_;
  std::unique_ptr<RemoteIndex> index_;
  std::unique_ptr<HomeService> home_service_;
  std::unique_ptr<ReplicaSync> sync_;
  std::unique_ptr<Duties> duties_;
  std::unique_ptr<FormerReplicas> former_;
  std::optional<Served> served_;
  UsageBySpace told_;  // What this node last reported to hold.
  Instant usage_at_;
  Event stopping_;
  Gate background_;
};

}  // namespace cairn::kv
