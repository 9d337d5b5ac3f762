// The planners and the map at 1,000 nodes and 20,000 targets, against stated bounds.
//
// Times are of the processor: all of it is one thread's. Prints each figure with its bound; ends
// with 1 when one is exceeded.
#include <cstdio>
#include <ctime>
#include <string>

#include "kvstore/control/group_planner.h"
#include "kvstore/control/map_codec.h"
#include "kvstore/control/membership.h"
#include "kvstore/control/set_planner.h"

namespace {

using namespace cairn::kv;

constexpr uint32_t kNodes = 1000;
constexpr uint32_t kTargetsPerNode = 20;

int exceeded = 0;

void Report(const char* name, double value, double bound, const char* unit) {
  const bool holds = value <= bound;
  exceeded += holds ? 0 : 1;
  std::printf("%-42s %10.3f %-4s (bound %g)%s\n", name, value, unit, bound,
              holds ? "" : "  EXCEEDED");
}

template <typename Call>
double SecondsOf(Call call) {
  const std::clock_t started = std::clock();
  call();
  return static_cast<double>(std::clock() - started) / CLOCKS_PER_SEC;
}

Observation Everybody(Instant now, NodeId silent) {
  Observation seen{.now = now, .nodes = {}};
  for (uint32_t id = 1; id <= kNodes; ++id) {
    if (NodeId{id} == silent) continue;
    SeenNode node;
    node.entry.id = {id};
    node.entry.name = "node-" + std::to_string(id) + ".rack-" + std::to_string(id % 40);
    node.entry.rack = "rack-" + std::to_string(id % 40);
    node.entry.addresses = {"10.1." + std::to_string(id / 250) + ".17:7400"};
    for (uint32_t i = 0; i < kTargetsPerNode; ++i) {
      node.targets.push_back({.id = {uint64_t{id} * 1000 + i}, .capacity = 4 * kTiB});
    }
    seen.nodes.push_back(std::move(node));
  }
  return seen;
}

uint64_t SizeOf(const EncodedMap& map) {
  uint64_t size = map.head.size();
  for (const MapPart& part : map.parts) size += part.bytes.size();
  return size;
}

uint64_t ChangedBytes(const EncodedMap& before, const EncodedMap& after) {
  uint64_t changed = after.head.size();
  for (const MapPart& part : after.parts) {
    bool known = false;
    for (const MapPart& old : before.parts) known = known || old.name == part.name;
    if (!known) changed += part.bytes.size();
  }
  return changed;
}

// One step of the coordinator, with every part of it measured.
void Step(const char* what, Membership& membership, const Observation& seen, MapContent& content,
          double bound) {
  ++content.epoch;
  const double member = SecondsOf([&] { membership.Step(seen, content); });
  const double sets = SecondsOf([&] { PlanSets(content, {}); });
  const double groups = SecondsOf([&] { PlanGroups(content, {}); });
  std::printf("  membership %.3f s, sets %.3f s, groups %.3f s\n", member, sets, groups);
  Report(what, member + sets + groups, bound, "s");
}

}  // namespace

int main() {
  ClusterShape shape;
  shape.group_bits = 16;
  MapContent content = EmptyMap(shape).value();
  Membership membership({.lost_after = Seconds(60), .stall_max = Seconds(100)});
  Instant now{1};
  membership.Step(Everybody(now, kNoNode), content);
  now = now + Seconds(10);
  Step("all of it planned for the first time", membership, Everybody(now, kNoNode), content, 5);
  now = now + Seconds(1);
  ++content.epoch;
  const double quiet = SecondsOf([&] { membership.Step(Everybody(now, kNoNode), content); });
  Report("a step in which nothing happens", quiet, 0.3, "s");
  const auto map = ClusterMap::Create(content).value();
  EncodedMap encoded;
  Report("encode", SecondsOf([&] { encoded = EncodeMap(*map); }), 0.5, "s");
  const std::string whole = EncodeWholeMap(*map);
  Report("decode and check", SecondsOf([&] { (void)DecodeWholeMap(whole).ok(); }), 0.5, "s");
  Report("size of the map", static_cast<double>(SizeOf(encoded)) / (1 << 20), 2, "MiB");
  std::printf("  %zu parts, %zu stripe sets, %zu index groups\n", encoded.parts.size(),
              content.sets.size(), content.groups.size());

  // A node falls silent: its homes move in the first step that sees it, and its places in the step
  // in which it is lost.
  now = now + Seconds(1);
  Step("a node is suspect: its homes move", membership, Everybody(now, {500}), content, 2);
  const auto suspect = ClusterMap::Create(content).value();
  const EncodedMap after = EncodeMap(*suspect);
  Report("written for that", static_cast<double>(ChangedBytes(encoded, after)) / 1024, 1536, "KiB");
  uint32_t homes = 0;
  for (const Group& group : content.groups) homes += group.since == content.epoch ? 1 : 0;
  std::printf("  %u groups have another home\n", homes);
  now = now + Seconds(61);
  Step("it is lost: its places move", membership, Everybody(now, {500}), content, 2);
  uint32_t filling = 0;
  for (const Group& group : content.groups) filling += group.filling != 0 ? 1 : 0;
  std::printf("  %u groups fill a new replica\n", filling);
  return exceeded == 0 ? 0 : 1;
}
