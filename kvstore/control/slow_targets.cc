// A vote in each step; what it finds has to last.
#include "kvstore/control/slow_targets.h"

#include <algorithm>

namespace cairn::kv {
namespace {

constexpr size_t kNamedShare = 6;  // As many as two of twelve.

using NodesOf = std::map<TargetId, NodeId>;

// Those that more than half of the other nodes that probably asked them find slow. Which targets a
// node has asked it does not say, as they may be thousands: each is as likely as another.
std::set<TargetId> Vote(std::span<const SlowReport> reports, const NodesOf& nodes) {
  struct Voice {
    uint64_t asked = 0;
    uint64_t reports = 0;
  };
  std::map<TargetId, uint64_t> votes;
  std::map<NodeId, Voice> voices;
  Voice all;
  for (const SlowReport& report : reports) {
    const Voice said{std::min<uint64_t>(report.asked, nodes.size()), 1};
    for (Voice* voice : {&voices[report.by], &all}) {
      voice->asked += said.asked;
      voice->reports += said.reports;
    }
    for (const TargetId id : report.slow) {
      const auto node = nodes.find(id);
      if (node != nodes.end() && node->second != report.by) ++votes[id];
    }
  }
  std::set<TargetId> found;
  for (const auto& [id, count] : votes) {
    const Voice own = voices[nodes.at(id)];
    const uint64_t least = std::min<uint64_t>(2, all.reports - own.reports);
    // Of all other nodes' askings a target has its part.
    const bool most = 2 * count * nodes.size() > all.asked - own.asked;
    if (count >= least && most) found.insert(id);
  }
  return found;
}

}  // namespace

void SlowTargets::Step(Instant now, std::span<const SlowReport> reports,
                       const MapContent& content) {
  NodesOf nodes;
  std::set<NodeId> writable;
  for (const TargetEntry& target : content.targets) {
    nodes[target.id] = target.node;
    if (target.writable()) writable.insert(target.node);
  }
  const std::set<TargetId> found = Vote(reports, nodes);
  for (const TargetId id : found) {
    Times& times = times_[id];
    if (!times.since) times.since = now;
    times.last = now;
  }
  for (auto& [id, times] : times_) {
    if (!found.contains(id)) times.since.reset();
  }
  std::erase_if(times_, [&](const auto& entry) {
    return !nodes.contains(entry.first) || now - entry.second.last >= options_.hold;
  });
  std::erase_if(named_, [&](TargetId id) { return !times_.contains(id); });
  const size_t most = std::max<size_t>(1, writable.size() / kNamedShare);
  std::set<NodeId> named;
  for (const TargetId id : named_) named.insert(nodes.at(id));
  for (const auto& [id, times] : times_) {
    if (!times.since || now - *times.since < options_.after) continue;
    if (named.size() >= most && !named.contains(nodes.at(id))) continue;
    named.insert(nodes.at(id));
    named_.insert(id);
  }
}

void SlowTargets::Adopt(Instant now, std::span<const TargetId> named) {
  for (const TargetId id : named) {
    named_.insert(id);
    times_[id].last = now;
  }
}

void SlowTargets::NoteStall() {
  for (auto& [id, times] : times_) times.since.reset();
}

}  // namespace cairn::kv
