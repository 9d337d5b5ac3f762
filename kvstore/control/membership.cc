// One step: take in who is new, judge all by their times, then let the breaker speak.
#include "kvstore/control/membership.h"

#include <algorithm>
#include <set>

namespace cairn::kv {
namespace {

// Of all nodes, and of all targets, that may be lost at once.
constexpr size_t kLostShare = 4;
bool IsBefore(const NodeEntry& a, const NodeEntry& b) { return a.id < b.id; }

constexpr uint8_t kWeightFirst = 10;
constexpr uint8_t kWeightStep = 10;

}  // namespace

// The state of one step.
class Membership::Round {
 public:
  Round(Membership& owner, const Observation& seen, MapContent& next)
      : owner_(owner), seen_(seen), next_(next) {}

  MembershipNews Run() {
    news_.stalled = owner_.last_step_.has_value() &&
                    seen_.now - *owner_.last_step_ > owner_.options_.stall_max;
    owner_.last_step_ = seen_.now;
    if (news_.stalled) ForgetTimes();
    for (const SeenNode& node : seen_.nodes) TakeIn(node);
    std::sort(next_.nodes.begin(), next_.nodes.end(), IsBefore);
    TakeInTargets();
    JudgeNodes();
    JudgeTargets();
    ForgetNodes();
    return std::move(news_);
  }

 private:
  void ForgetTimes() {
    for (auto& [id, time] : owner_.nodes_) time.missing_since.reset();
    for (auto& [id, time] : owner_.targets_) time.missing_since.reset();
  }

  // --- Newcomers ---------------------------------------------------------------

  void TakeIn(const SeenNode& node) {
    if (!SpeaksWithOthers(node.entry)) {
      return Refuse(node.entry, "it speaks no protocol version that all others speak");
    }
    const auto found =
        std::find_if(next_.nodes.begin(), next_.nodes.end(),
                     [&](const NodeEntry& entry) { return entry.id == node.entry.id; });
    NodeEntry* known = found != next_.nodes.end() ? &*found : nullptr;
    if (known == nullptr) {
      if (next_.nodes.size() >= kNodesMax) return Refuse(node.entry, "there are too many nodes");
      known = &next_.nodes.emplace_back();
      known->id = node.entry.id;
    }
    known->name = node.entry.name;
    known->rack = node.entry.rack;
    known->addresses = node.entry.addresses;
    known->protocol_min = node.entry.protocol_min;
    known->protocol_max = node.entry.protocol_max;
    heard_.insert(node.entry.id);
  }

  bool SpeaksWithOthers(const NodeEntry& node) const {
    for (const NodeEntry& other : next_.nodes) {
      if (other.id == node.id || other.state == MemberState::kLost) continue;
      if (other.state == MemberState::kJoining) continue;
      const bool overlap =
          node.protocol_min <= other.protocol_max && other.protocol_min <= node.protocol_max;
      if (!overlap) return false;
    }
    return true;
  }

  void Refuse(const NodeEntry& node, const std::string& why) {
    news_.refused.push_back("node " + std::to_string(node.id.value) + " (" + node.name + "): " +
                            why);
  }

  void TakeInTargets() {
    std::map<TargetId, TargetEntry*> known;
    std::set<uint16_t> slots;
    for (TargetEntry& target : next_.targets) {
      known[target.id] = &target;
      slots.insert(target.slot);
    }
    std::vector<TargetEntry> added;
    uint16_t slot = 0;
    for (const SeenNode& node : seen_.nodes) {
      if (!heard_.contains(node.entry.id)) continue;
      for (const SeenTarget& target : node.targets) {
        if (target.id == kNoTarget || !claimed_.insert(target.id).second) continue;
        const auto found = known.find(target.id);
        if (found != known.end()) {
          Update(*found->second, node.entry.id, target);
          continue;
        }
        if (target.failed) continue;
        if (slots.size() >= kTargetsMax) {
          Refuse(node.entry, "there are too many targets");
          continue;
        }
        while (slots.contains(slot)) ++slot;
        slots.insert(slot);
        added.push_back({.id = target.id, .slot = slot, .node = node.entry.id,
                         .capacity = target.capacity, .state = MemberState::kJoining,
                         .draining = false, .weight_percent = kWeightFirst,
                         .since = next_.epoch});
        heard_targets_.insert(target.id);
      }
    }
    next_.targets.insert(next_.targets.end(), added.begin(), added.end());
    std::sort(next_.targets.begin(), next_.targets.end(),
              [](const TargetEntry& a, const TargetEntry& b) { return a.slot < b.slot; });
  }

  void Update(TargetEntry& target, NodeId node, const SeenTarget& seen) {
    target.node = node;  // A disk may have been carried to another machine.
    target.capacity = seen.capacity;
    if (!seen.failed) heard_targets_.insert(seen.id);
  }

  // --- Judgement ---------------------------------------------------------------

  // What a member's times say, before the breaker.
  MemberState Judge(MemberState before, bool heard, Times& times) const {
    if (heard) {
      times.missing_since.reset();
      if (!times.heard_since) times.heard_since = seen_.now;
      if (before == MemberState::kUp) return before;
      const bool steady = seen_.now - *times.heard_since >= owner_.options_.steady_after;
      return steady ? MemberState::kUp : MemberState::kJoining;
    }
    times.heard_since.reset();
    if (!times.missing_since) times.missing_since = seen_.now;
    if (before == MemberState::kLost) return before;
    const bool overdue = seen_.now - *times.missing_since >= owner_.options_.lost_after;
    return overdue ? MemberState::kLost : MemberState::kSuspect;
  }

  void JudgeNodes() {
    std::set<NodeId> with_targets;
    for (const TargetEntry& target : next_.targets) with_targets.insert(target.node);
    std::vector<MemberState> verdicts;
    for (NodeEntry& node : next_.nodes) {
      node.draining = Contains(seen_.draining_nodes, node.id);
      verdicts.push_back(Judge(node.state, heard_.contains(node.id), owner_.nodes_[node.id]));
    }
    Break(next_.nodes, with_targets.size(), verdicts,
          [&](const NodeEntry& node) { return with_targets.contains(node.id); });
    for (size_t i = 0; i < verdicts.size(); ++i) next_.nodes[i].state = verdicts[i];
  }

  void JudgeTargets() {
    std::vector<MemberState> verdicts;
    for (TargetEntry& target : next_.targets) {
      const bool draining =
          NodeOf(target).draining || Contains(seen_.draining_targets, target.id);
      if (draining != target.draining) target.since = next_.epoch;
      target.draining = draining;
      const MemberState own =
          Judge(target.state, heard_targets_.contains(target.id), owner_.targets_[target.id]);
      const MemberState node = NodeOf(target).state;
      // A suspect node's targets are lost with it, not before it.
      const bool waits = node == MemberState::kSuspect && target.state != MemberState::kLost;
      verdicts.push_back(waits ? MemberState::kSuspect : std::max(own, node));
    }
    Break(next_.targets, next_.targets.size(), verdicts, [](const TargetEntry&) { return true; });
    for (size_t i = 0; i < verdicts.size(); ++i) {
      TargetEntry& target = next_.targets[i];
      if (target.state != verdicts[i]) target.since = next_.epoch;
      target.state = verdicts[i];
      GrowWeight(target);
    }
  }

  // The circuit breaker: when too many would be lost, those that are not yet stay suspect. It does
  // not hold what is draining: a person wants that gone.
  template <typename Entry, typename Counts>
  void Break(const std::vector<Entry>& entries, size_t all, std::vector<MemberState>& verdicts,
             Counts counts) {
    size_t lost = 0;
    std::vector<size_t> losing;
    for (size_t i = 0; i < verdicts.size(); ++i) {
      const Entry& entry = entries[i];
      if (verdicts[i] != MemberState::kLost || entry.draining || !counts(entry)) continue;
      ++lost;
      if (entry.state != MemberState::kLost) losing.push_back(i);
    }
    if (losing.empty() || lost <= all / kLostShare) return;
    news_.breaker_open = true;
    for (const size_t i : losing) verdicts[i] = MemberState::kSuspect;
  }

  const NodeEntry& NodeOf(const TargetEntry& target) const {
    NodeEntry wanted;
    wanted.id = target.node;
    return *std::lower_bound(next_.nodes.begin(), next_.nodes.end(), wanted, IsBefore);
  }

  void GrowWeight(TargetEntry& target) {
    std::optional<Instant>& since = owner_.targets_[target.id].weight_since;
    if (target.state != MemberState::kUp || target.weight_percent >= kWeightFull) {
      since.reset();
      return;
    }
    if (!since) since = seen_.now;
    if (seen_.now - *since < owner_.options_.weight_step) return;
    since = seen_.now;
    target.weight_percent = std::min<uint8_t>(
        kWeightFull, static_cast<uint8_t>(target.weight_percent + kWeightStep));
  }

  template <typename Id>
  static bool Contains(const std::vector<Id>& ids, Id id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  }

  // A lost node without targets (any more) is nobody's concern.
  void ForgetNodes() {
    std::set<NodeId> with_targets;
    for (const TargetEntry& target : next_.targets) with_targets.insert(target.node);
    std::erase_if(next_.nodes, [&](const NodeEntry& node) {
      const bool forgotten = node.state == MemberState::kLost && !with_targets.contains(node.id);
      if (forgotten) owner_.nodes_.erase(node.id);
      return forgotten;
    });
    std::set<TargetId> known;
    for (const TargetEntry& target : next_.targets) known.insert(target.id);
    std::erase_if(owner_.targets_, [&](const auto& times) { return !known.contains(times.first); });
  }

  Membership& owner_;
  const Observation& seen_;
  MapContent& next_;
  MembershipNews news_;
  std::set<NodeId> heard_;
  std::set<TargetId> heard_targets_;
  std::set<TargetId> claimed_;
};

MembershipNews Membership::Step(const Observation& seen, MapContent& next) {
  return Round(*this, seen, next).Run();
}

}  // namespace cairn::kv
