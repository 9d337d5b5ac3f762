// The map says who is there; the control store who coordinates, what is free and what is vacated.
#include "kvstore/cluster/control_admin.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "kvstore/control/cluster_view.h"
#include "kvstore/control/member_reports.h"

namespace cairn::kv {
namespace {

// A caller need not know which of the two it was: it waits, and asks again.
Status ControlAway(const Status& why) {
  if (why.ok()) return Status();
  const std::string words = why.message().empty() ? why.ToString() : why.message();
  return Status(Code::kUnavailable, "the control store (etcd) does not answer: " + words);
}

void TakeMap(const ClusterMap& map, NodeId self, ClusterInfo& info) {
  const ClusterView view = ViewOf(map, self);
  info.epoch = map.epoch();
  info.groups = static_cast<uint32_t>(view.groups);
  info.groups_homeless = static_cast<uint32_t>(view.groups_homeless);
  info.groups_filling = static_cast<uint32_t>(view.groups_filling);
  info.nodes.assign(map.nodes().begin(), map.nodes().end());
  std::map<TargetId, uint32_t> groups;
  for (const Group& group : map.groups()) {
    for (const TargetId id : group.targets) ++groups[id];
  }
  for (const TargetEntry& entry : map.targets()) {
    ClusterTargetInfo& target = info.targets.emplace_back();
    target.id = entry.id;
    target.node = entry.node;
    target.state = entry.state;
    target.draining = entry.draining;
    target.weight_percent = entry.weight_percent;
    target.capacity_bytes = entry.capacity;
    target.groups = groups[entry.id];
  }
}

void TakeReports(const ClusterMap& map, const MemberReports& reports, ClusterInfo& info) {
  const std::vector<TargetId> vacated = VacatedTargets(map.content(), reports.vacated);
  for (ClusterTargetInfo& target : info.targets) {
    const auto free = reports.free_bytes.find(target.id);
    if (free != reports.free_bytes.end()) target.free_bytes = free->second;
    target.vacated = std::binary_search(vacated.begin(), vacated.end(), target.id);
  }
}

// Nothing when `text` is not a number of a node.
std::optional<NodeId> IdIn(const std::string& text) {
  uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end || value == 0) return std::nullopt;
  return NodeId{value};
}

const NodeEntry* FindIn(const ClusterMap& map, const std::string& node) {
  const auto nodes = map.nodes();
  const auto named = std::find_if(nodes.begin(), nodes.end(),
                                  [&](const NodeEntry& entry) { return entry.name == node; });
  if (named != nodes.end()) return &*named;
  const std::optional<NodeId> id = IdIn(node);
  return id ? map.FindNode(*id) : nullptr;
}

}  // namespace

Task<Result<ClusterInfo>> ControlAdmin::DescribeCluster() {
  const std::shared_ptr<const ClusterMap> map = map_.map();
  ClusterInfo info;
  info.name = options_.cluster;
  info.self = self_;
  if (map != nullptr) TakeMap(*map, self_, info);
  const Status asked = co_await AskControl(map.get(), info);
  info.control = ControlAway(asked);
  co_return std::move(info);
}

Task<Status> ControlAdmin::AskControl(const ClusterMap* map, ClusterInfo& info) {
  const Instant deadline = clock_.Now() + options_.call_timeout;
  auto leader = co_await control_.Range(keys_.Leader(), deadline);
  if (!leader.ok()) co_return leader.status();
  for (const KeyValue& entry : leader.value().entries) {
    info.coordinator = {static_cast<uint32_t>(ControlKeys::IdOf(entry.value))};
  }
  auto members = co_await control_.Range(keys_.Members(), deadline);
  if (!members.ok()) co_return members.status();
  if (map == nullptr) co_return Status();
  TakeReports(*map, ReadMemberReports(members.value(), keys_, clock_.Now()), info);
  co_return Status();
}

Task<Result<NodeId>> ControlAdmin::Find(std::string node, Draining wanted) {
  const std::shared_ptr<const ClusterMap> map = map_.map();
  const NodeEntry* entry = map == nullptr ? nullptr : FindIn(*map, node);
  if (entry != nullptr) co_return entry->id;
  const Status unknown(Code::kNotFound, "there is no node '" + node + "' in cluster '" +
                                            options_.cluster + "'; 'cairn cluster' lists them");
  if (wanted == Draining::kYes) co_return unknown;
  // It was forgotten, and keeps its id for when it comes back: so must a wish be taken back.
  NodeId id = IdIn(node).value_or(kNoNode);
  if (id == kNoNode) {
    KV_CO_ASSIGN_OR_RETURN(id, co_await IdOfName(std::move(node)));
  }
  if (id == kNoNode) co_return unknown;
  KV_CO_RETURN_IF_ERROR(
      co_await FindWish(keys_.DrainNodes() + ControlKeys::Hex(id.value), unknown));
  co_return id;
}

Task<Result<NodeId>> ControlAdmin::IdOfName(std::string name) {
  if (name.empty() || name.find('/') != std::string::npos) co_return kNoNode;
  const Instant deadline = clock_.Now() + options_.call_timeout;
  auto known = co_await control_.Range(keys_.NodeName(name), deadline);
  if (!known.ok()) co_return ControlAway(known.status());
  if (known.value().entries.empty()) co_return kNoNode;
  co_return NodeId{static_cast<uint32_t>(ControlKeys::IdOf(known.value().entries[0].value))};
}

Task<Status> ControlAdmin::FindWish(std::string key, Status unknown) {
  const Instant deadline = clock_.Now() + options_.call_timeout;
  auto wish = co_await control_.Range(std::move(key), deadline);
  if (!wish.ok()) co_return ControlAway(wish.status());
  co_return wish.value().entries.empty() ? unknown : Status();
}

Task<Status> ControlAdmin::DrainNode(std::string node, Draining wanted) {
  auto id = co_await Find(std::move(node), wanted);
  if (!id.ok()) co_return id.status();
  const Instant deadline = clock_.Now() + options_.call_timeout;
  const Status set = co_await SetDraining(control_, keys_, id.value(), wanted, deadline);
  co_return ControlAway(set);
}

Task<Status> ControlAdmin::DrainTarget(TargetId target, Draining wanted) {
  const std::shared_ptr<const ClusterMap> map = map_.map();
  if (map == nullptr || map->FindTarget(target) == nullptr) {
    Status unknown(Code::kNotFound, "there is no target " + std::to_string(target.value) +
                                        " in cluster '" + options_.cluster +
                                        "'; 'cairn cluster --targets' lists them");
    if (wanted == Draining::kYes) co_return unknown;
    KV_CO_RETURN_IF_ERROR(co_await FindWish(
        keys_.DrainTargets() + ControlKeys::Hex(target.value), std::move(unknown)));
  }
  const Instant deadline = clock_.Now() + options_.call_timeout;
  const Status set = co_await SetDraining(control_, keys_, target, wanted, deadline);
  co_return ControlAway(set);
}

}  // namespace cairn::kv
