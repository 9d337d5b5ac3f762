// What nodes tell the coordinator through the control store, as bytes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kvstore/base/result.h"
#include "kvstore/control/group_planner.h"
#include "kvstore/control/membership.h"
#include "kvstore/control/repair_plan.h"
#include "kvstore/control/slow_targets.h"

namespace cairn::kv {

struct TargetReport {
  SeenTarget target;
  uint64_t free_bytes = 0;
  bool operator==(const TargetReport&) const = default;
};

// Lies under the node's lease: that it is there says that the node lives.
struct NodeReport {
  NodeEntry entry;        // But for its state and `draining`.
  uint64_t instance = 0;  // Random, of this start of the process.
  uint64_t map_epoch = 0;
  std::vector<TargetReport> targets = {};
  bool operator==(const NodeReport&) const = default;
};

// How far the node is with what the map asks of it.
struct NodeWork {
  struct Vacated {
    TargetId target;
    uint64_t epoch = 0;  // Of the map under which nothing of its groups was left there.
    bool operator==(const Vacated&) const = default;
  };
  std::vector<Vacated> vacated = {};
  std::vector<FilledPlace> filled = {};
  bool operator==(const NodeWork&) const = default;
};

// Bytes by namespace.
using UsageBySpace = std::map<NamespaceId, uint64_t>;

// All end in a checksum; decoding gives kCorrupt when anything is wrong.
std::string EncodeReport(const NodeReport& report);
Result<NodeReport> DecodeReport(std::string_view bytes);
std::string EncodeWork(const NodeWork& work);
Result<NodeWork> DecodeWork(std::string_view bytes);
// Whose it is the key says: not encoded.
std::string EncodeSlow(const SlowReport& report);
Result<SlowReport> DecodeSlow(std::string_view bytes);
// What the coordinator has set aside.
std::string EncodeSetAside(const std::set<TargetId>& targets);
Result<std::vector<TargetId>> DecodeSetAside(std::string_view bytes);
std::string EncodeSpaceUsage(const UsageBySpace& usage);
Result<UsageBySpace> DecodeSpaceUsage(std::string_view bytes);

}  // namespace cairn::kv
