// Where things lie in the control store: all of one cluster under one prefix.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kvstore/index/index_codec.h"
#include "kvstore/io/network.h"
#include "kvstore/types/ids.h"

namespace cairn::kv {

class ControlKeys {
 public:
  // `cluster` is a name of letters, digits, '-' and '_'.
  explicit ControlKeys(std::string_view cluster)
      : prefix_(std::string("/cairn/").append(cluster).append("/")) {}

  // Names to node ids, for good; and the next id.
  std::string NodeName(std::string_view name) const { return At("node/").append(name).append("/"); }
  std::string NextNode() const { return At("next-node"); }

  // What the coordinator reads in each step: reports, work, wishes. Ids are hex digits.
  std::string Members() const { return At("member/"); }
  std::string Reports() const { return Members() + "report/"; }
  std::string Work() const { return Members() + "work/"; }
  std::string Slow() const { return Members() + "slow/"; }
  std::string DrainNodes() const { return Members() + "drain-node/"; }
  std::string DrainTargets() const { return Members() + "drain-target/"; }
  std::string Usage() const { return At("usage/"); }
  // What the coordinator has found slow: the next one begins with it.
  std::string SetAside() const { return At("set-aside"); }
  std::string UsageTotal() const { return At("usage-total"); }

  // Held by the coordinator with its lease.
  std::string Leader() const { return At("leader"); }
  std::string MapHead() const { return At("map/head"); }
  std::string MapParts() const { return At("map/part/"); }

  std::string Spaces() const { return At("space/"); }
  std::string Space(std::string_view name) const { return Spaces() + SpaceKey(name); }
  std::string Tombstone(const NamespaceId& space) const { return Spaces() + TombstoneKey(space); }

  // Sixteen digits, so that no id is the prefix of another.
  static std::string Hex(uint64_t id) {
    std::string digits;
    for (int shift = 60; shift >= 0; shift -= 4) {
      digits.push_back("0123456789abcdef"[id >> shift & 15]);
    }
    return digits;
  }
  // The id at the end of `key`; 0 when there is none.
  static uint64_t IdOf(std::string_view key) {
    uint64_t id = 0;
    if (key.size() < 16) return 0;
    for (const char digit : key.substr(key.size() - 16)) {
      const size_t value = std::string_view("0123456789abcdef").find(digit);
      if (value == std::string_view::npos) return 0;
      id = id << 4 | value;
    }
    return id;
  }

 private:
  std::string At(std::string_view rest) const { return std::string(prefix_).append(rest); }

  const std::string prefix_;
};

}  // namespace cairn::kv
