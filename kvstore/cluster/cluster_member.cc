// Joins bottom-up, follows each map from top to bottom, leaves top-down.
#include "kvstore/cluster/cluster_member.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace cairn::kv {
namespace {

constexpr Nanos kReportEvery = Seconds(1);
constexpr Nanos kUsageEvery = Seconds(10);

Status Explain(const Status& why, const std::string& words) {
  return Status(why.code(), words + ": " + why.message());
}

}  // namespace

ClusterMember::ClusterMember(Parts parts, ClusterOptions options)
    : parts_(parts),
      options_(std::move(options)),
      map_(parts.loop, parts.clock, parts.log),
      spaces_(parts.loop, parts.clock, parts.control, ControlKeys(options_.agent.cluster)),
      admin_(parts.clock, parts.control, map_,
             {.cluster = options_.agent.cluster, .call_timeout = options_.agent.call_timeout}),
      stopping_(parts.loop),
      background_(parts.loop) {
  options_.agent.self.protocol_min = peer::kVersionMin;
  options_.agent.self.protocol_max = options_.protocol_max;
}

ClusterMember::~ClusterMember() = default;

// --- Joining ------------------------------------------------------------------------------------

Task<Status> ClusterMember::Join(const LocalTargets& own) {
  own_ = &own;
  KV_CO_RETURN_IF_ERROR(co_await StartAgent());
  Status joined = co_await OpenNetwork();
  if (joined.ok()) joined = co_await AwaitMap();
  if (!joined.ok()) {
    co_await Abandon();
    co_return joined;
  }
  MakeParts();
  parts_.log.Info("cluster: joined '" + options_.agent.cluster + "' as node " +
                  std::to_string(agent_->id().value) + " ('" + options_.agent.self.name +
                  "'), epoch " + std::to_string(map_.epoch()));
  co_return Status();
}

Task<Status> ClusterMember::StartAgent() {
  agent_ = std::make_unique<Agent>(
      parts_.loop, parts_.clock, parts_.control, parts_.random, parts_.log, options_.agent,
      [this](std::shared_ptr<const ClusterMap> map) { map_.Take(std::move(map)); });
  Report();
  const Instant deadline = parts_.clock.Now() + options_.join_timeout;
  const Status started = co_await agent_->Start(deadline);
  if (started.ok()) {
    admin_.SetSelf(agent_->id());
    co_return Status();
  }
  if (started.code() == Code::kConflict) {
    co_return Explain(started, "cluster.node: the name '" + options_.agent.self.name +
                                   "' is taken; stop the other process, or give this node a name "
                                   "of its own");
  }
  co_return Explain(started, "cluster.etcd: does not answer; start it, or correct its address");
}

Task<Status> ClusterMember::OpenNetwork() {
  const NodeId self = agent_->id();
  KV_CO_ASSIGN_OR_RETURN(network_, parts_.links.Open(self));
  caller_ = std::make_unique<PeerCaller>(parts_.loop, parts_.clock, *network_, map_);
  map_.FetchBy(*caller_);
  const auto find_own = [this](TargetId id) { return FindOwn(id); };
  const PeerServiceOptions service_options{.version_max = options_.protocol_max};
  service_ = std::make_unique<PeerService>(parts_.clock, map_, find_own, service_options);
  service_->Serve(*network_);
  const CoordinatorOptions coordinator{.cluster = options_.agent.cluster,
                                       .self = self,
                                       .shape = options_.shape,
                                       .membership = options_.membership,
                                       .slow = options_.slow};
  coordinator_ = std::make_unique<Coordinator>(parts_.loop, parts_.clock, parts_.control,
                                               parts_.random, parts_.log, coordinator);
  coordinator_->Start();
  co_return Status();
}

Task<Status> ClusterMember::AwaitMap() {
  const Instant deadline = parts_.clock.Now() + options_.join_timeout;
  parts_.log.Info("cluster: waiting for a map with this node");
  while (map_.map() == nullptr || map_.map()->FindNode(agent_->id()) == nullptr) {
    if (parts_.clock.Now() >= deadline) {
      co_return Status(Code::kUnavailable,
                       "the cluster's map does not take this node in; the log of the node that "
                       "coordinates says why");
    }
    co_await map_.AwaitChange(deadline);
  }
  const uint32_t bits = map_.map()->shape().group_bits;
  if (bits == options_.shape.group_bits) co_return Status();
  co_return Status(Code::kInvalid, "cluster.group_bits: is " +
                                       std::to_string(options_.shape.group_bits) +
                                       ", and the cluster was made with " + std::to_string(bits) +
                                       "; write that");
}

void ClusterMember::MakeParts() {
  const NodeId self = agent_->id();
  const std::shared_ptr<const ClusterMap>& map = map_.map();
  homes_ = std::make_unique<MapHomes>(parts_.clock, self, map, [](uint64_t) {});
  // By the map alone: what a node without a lease may not do is for HomeGroups to say.
  homes_->SetMemberUntil(kNever);
  TenureOptions tenure = options_.tenure;
  tenure.node_lease = options_.agent.lease_ttl;
  groups_ = std::make_unique<HomeGroups>(parts_.clock, *homes_, tenure,
                                         [this] { return agent_->HoldsLease(); });
  far_ = std::make_unique<FarTargets>(parts_.loop, *caller_);
  set_ = std::make_unique<TargetSet>(parts_.clock, PortsOf(*map));
  placement_ = std::make_unique<MapPlacement>(self, *set_, parts_.random, map);
  peers_ = std::make_unique<Peers>(*caller_);
  duties_ = std::make_unique<Duties>(parts_.clock, self, options_.repair_bytes_per_second);
  SetPeers(*map);
  followed_ = map;
  map_.SetOnChange([this] { Follow(); });
}

StripeIndex& ClusterMember::IndexOver(Home& home) {
  const RemoteIndex::Parts index_parts{.loop = parts_.loop,
                                       .clock = parts_.clock,
                                       .random = parts_.random,
                                       .map = *homes_,
                                       .peer = *peers_,
                                       .own = home.index(),
                                       .targets = *set_,
                                       .placement = *placement_};
  index_ = std::make_unique<RemoteIndex>(index_parts, RemoteIndexOptions());
  return *index_;
}

void ClusterMember::Begin(Served served) {
  served_.emplace(served);
  const HomeService::Parts home_parts{.map = *homes_, .index = served.home.index()};
  home_service_ = std::make_unique<HomeService>(home_parts);
  const ReplicaSync::Parts sync_parts{.clock = parts_.clock,
                                      .log = parts_.log,
                                      .groups = *groups_,
                                      .index = served.home.index(),
                                      .targets = *set_,
                                      .own = *own_};
  sync_ = std::make_unique<ReplicaSync>(sync_parts, agent_->id());
  service_->SetKeeper(served.keeper);
  service_->SetAnswerHome([this](NodeId source, Bytes request) {
    return home_service_->Answer(source, std::move(request));
  });
  groups_->Begin(served.home, *own_);
  Follow();
  spaces_.Follow(served.home.spaces(), served.home.sweeper());
  background_.Hold(KeepReporting());
  former_ = std::make_unique<FormerReplicas>(map_, parts_.log, *own_);
  background_.Hold(KeepClean());
}

TargetPort* ClusterMember::FindOwn(TargetId id) const {
  const auto found = std::find_if(own_->begin(), own_->end(),
                                  [id](const auto& target) { return target->id() == id; });
  return found == own_->end() ? nullptr : found->get();
}

// --- Following the map --------------------------------------------------------------------------

void ClusterMember::Follow() {
  const std::shared_ptr<const ClusterMap> map = map_.map();
  const std::shared_ptr<const ClusterMap> before = std::exchange(followed_, map);
  SetPeers(*map);
  homes_->Use(map);
  set_->Use(PortsOf(*map));
  placement_->Use(map);
  groups_->Update(*map);
  if (!served_) return;
  sync_->ForgetFilled(*map);
  if (MustCompare(*before, *map)) served_->home.index().Unsettle();
  for (const NodeEntry& node : map->nodes()) {
    if (node.state == MemberState::kLost) home_service_->ForgetNode(node.id);
  }
}

void ClusterMember::SetPeers(const ClusterMap& map) {
  for (const NodeEntry& node : map.nodes()) {
    std::vector<std::string>& known = addresses_[node.id];
    const bool is_new = !node.addresses.empty() && known != node.addresses;
    if (node.id == agent_->id() || !is_new) continue;
    const Status set = parts_.links.SetPeer(node.id, node.addresses);
    if (set.ok()) {
      known = node.addresses;
    } else {
      parts_.log.Warning("cluster: node '" + node.name + "': " + set.ToString());
    }
  }
}

std::vector<TargetPort*> ClusterMember::PortsOf(const ClusterMap& map) {
  std::vector<TargetPort*> ports = far_->Use(map, agent_->id());
  for (const auto& target : *own_) ports.push_back(target.get());
  return ports;
}

bool ClusterMember::MustCompare(const ClusterMap& before, const ClusterMap& map) const {
  const auto is_back = [&](TargetId id) {
    const TargetEntry* then = before.FindTarget(id);
    const TargetEntry* now = map.FindTarget(id);
    const bool was_away = then != nullptr && (then->state == MemberState::kSuspect ||
                                              then->state == MemberState::kLost);
    return was_away && now != nullptr && now->state != then->state;
  };
  const std::vector<uint32_t> here = groups_->Here();
  return std::any_of(here.begin(), here.end(), [&](uint32_t group) {
    const Group& entry = map.groups()[group];
    return !groups_->IsCompared(group) || entry.filling != 0 ||
           std::any_of(entry.targets.begin(), entry.targets.end(), is_back);
  });
}

Task<Status> ClusterMember::RepairIndex(uint64_t& filed) {
  return sync_->Run(map_.map(), filed);
}

// --- Reporting ----------------------------------------------------------------------------------

Task<void> ClusterMember::KeepReporting() {
  while (!stopping_.is_set()) {
    co_await parts_.clock.SleepUntil(parts_.clock.Now() + kReportEvery, &stopping_);
    if (stopping_.is_set()) break;
    Report();
    duties_->Attend(*map_.map(), served_->repairer);
    co_await index_->SendUse();
    if (parts_.clock.Now() < usage_at_) continue;
    usage_at_ = parts_.clock.Now() + kUsageEvery;
    co_await LearnUsage();
  }
}

Task<void> ClusterMember::KeepClean() {
  while (!stopping_.is_set()) {
    co_await parts_.clock.SleepUntil(parts_.clock.Now() + kReportEvery, &stopping_);
    co_await former_->Attend(stopping_);
  }
}

void ClusterMember::Report() {
  std::vector<TargetReport> reports;
  for (const auto& target : *own_) {
    const SegmentLogStats stats = target->log().stats();
    // Rounded, so that not every put changes the report.
    reports.push_back({.target = {.id = target->id(), .capacity = stats.capacity_bytes},
                       .free_bytes = AlignDown(stats.free_bytes, 64 * kMiB)});
  }
  agent_->SetTargets(std::move(reports));
  if (!served_) return;
  NodeWork work{.vacated = duties_->vacated(), .filled = {}};
  work.filled.assign(sync_->filled().begin(), sync_->filled().end());
  agent_->SetWork(std::move(work));
  auto seen = served_->store.SlowTargets();
  // Rounded, so that not every target that is asked changes the report.
  if (seen) agent_->SetSlow(SlowReport{{}, std::bit_ceil(seen->asked), std::move(seen->slow)});
  if (!seen) agent_->SetSlow(std::nullopt);
}

// The sum of all homes' reports, without what this one said, is what the others have.
Task<void> ClusterMember::LearnUsage() {
  auto usage = co_await spaces_.Usage();
  SpaceLedger& ledger = served_->home.ledger();
  if (usage.ok()) {
    UsageBySpace others = std::move(usage).value();
    for (auto& [space, bytes] : others) {
      const auto own = told_.find(space);
      if (own != told_.end()) bytes -= std::min(bytes, own->second);
    }
    ledger.SetElsewhere(std::move(others));
  }
  told_ = ledger.Stored();
  agent_->SetUsage(told_);
}

// --- Leaving ------------------------------------------------------------------------------------

Task<void> ClusterMember::Leave() {
  parts_.log.Info("cluster: leaving; its lease is given back");
  stopping_.Set();
  co_await background_.Close();
  co_await spaces_.Stop();
  co_await coordinator_->Stop();
  co_await agent_->Stop();
}

// Until here maps are followed: who is home no longer must know it, or what it still does for
// others would be believed.
Task<void> ClusterMember::Close() {
  map_.SetOnChange({});
  if (index_ != nullptr) co_await index_->Stop();
  co_await far_->Stop();
  co_await map_.Stop();
  co_await caller_->Stop();
  co_await parts_.links.Stop();
}

Task<void> ClusterMember::Abandon() {
  if (coordinator_ != nullptr) co_await coordinator_->Stop();
  co_await agent_->Stop();
  co_await map_.Stop();
  if (caller_ != nullptr) co_await caller_->Stop();
  if (network_ != nullptr) co_await parts_.links.Stop();
}

// --- For people ---------------------------------------------------------------------------------

void ClusterMember::TellSetAside(ClusterView& view) const {
  const std::shared_ptr<const ClusterMap> map = map_.map();
  for (const TargetId id : coordinator_->set_aside()) {
    const TargetEntry* target = map != nullptr ? map->FindTarget(id) : nullptr;
    const NodeEntry* node = target != nullptr ? map->FindNode(target->node) : nullptr;
    view.set_aside.push_back({id, node != nullptr ? node->name : ""});
  }
}

ClusterView ClusterMember::view() const {
  ClusterView view;
  if (agent_ != nullptr && map_.map() != nullptr) view = ViewOf(*map_.map(), agent_->id());
  view.name = options_.agent.cluster;
  view.coordinates = coordinator_ != nullptr && coordinator_->leads();
  if (view.coordinates) TellSetAside(view);
  const auto slow = served_ ? served_->store.SlowTargets() : std::nullopt;
  if (slow) view.targets_slow = slow->slow.size();
  view.holds_lease = agent_ != nullptr && agent_->HoldsLease();
  return view;
}

}  // namespace cairn::kv
