// Sorts the keys by what they are.
#include "kvstore/control/member_reports.h"

#include <utility>

#include "kvstore/control/node_report.h"

namespace cairn::kv {
namespace {

void TakeReport(MemberReports& members, const KeyValue& entry) {
  const auto report = DecodeReport(entry.value);
  if (!report.ok()) return;
  SeenNode node{.entry = report.value().entry, .targets = {}};
  for (const TargetReport& target : report.value().targets) {
    node.targets.push_back(target.target);
    members.free_bytes[target.target.id] = target.free_bytes;
  }
  members.seen.nodes.push_back(std::move(node));
}

void TakeWork(MemberReports& members, const KeyValue& entry) {
  const auto work = DecodeWork(entry.value);
  if (!work.ok()) return;
  const NodeId node{static_cast<uint32_t>(ControlKeys::IdOf(entry.key))};
  for (const NodeWork::Vacated& vacated : work.value().vacated) {
    members.vacated.push_back({.node = node, .target = vacated.target, .epoch = vacated.epoch});
  }
  members.filled.insert(members.filled.end(), work.value().filled.begin(),
                        work.value().filled.end());
}

void TakeSlow(MemberReports& members, const KeyValue& entry) {
  auto slow = DecodeSlow(entry.value);
  if (!slow.ok()) return;
  slow.value().by = {static_cast<uint32_t>(ControlKeys::IdOf(entry.key))};
  members.slow.push_back(std::move(slow).value());
}

}  // namespace

MemberReports ReadMemberReports(const Snapshot& snapshot, const ControlKeys& keys, Instant now) {
  MemberReports members;
  members.seen.now = now;
  for (const KeyValue& entry : snapshot.entries) {
    const uint64_t id = ControlKeys::IdOf(entry.key);
    if (entry.key.starts_with(keys.Reports())) {
      TakeReport(members, entry);
    } else if (entry.key.starts_with(keys.Work())) {
      TakeWork(members, entry);
    } else if (entry.key.starts_with(keys.Slow())) {
      TakeSlow(members, entry);
    } else if (entry.key.starts_with(keys.DrainNodes())) {
      members.seen.draining_nodes.push_back({static_cast<uint32_t>(id)});
    } else if (entry.key.starts_with(keys.DrainTargets())) {
      members.seen.draining_targets.push_back({id});
    }
  }
  return members;
}

}  // namespace cairn::kv
