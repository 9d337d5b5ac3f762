// What planners ask of a map's targets: by id, by failure domain and rack, the least loaded first.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "kvstore/control/cluster_map.h"

namespace cairn::kv {

inline constexpr uint32_t kNowhere = UINT32_MAX;

// Targets are numbered as they stand in content.targets; neither they nor the nodes may change
// while this lives.
class TargetTable {
 public:
  explicit TargetTable(const MapContent& content);

  // kNowhere when it is not in the map.
  uint32_t Find(TargetId id) const;
  const TargetEntry& at(uint32_t target) const { return content_.targets[target]; }
  uint64_t domain(uint32_t target) const { return DomainOf(content_.shape, at(target)); }
  // Racks are numbered; where targets are the failure domain all are in one.
  uint32_t rack(uint32_t target) const { return racks_[target]; }
  uint32_t size() const { return static_cast<uint32_t>(content_.targets.size()); }
  bool Stays(TargetId id) const;

 private:
  const MapContent& content_;
  std::vector<std::pair<TargetId, uint32_t>> order_;  // By id.
  std::vector<uint32_t> racks_;
};

// Finds targets for the places of sets and groups.
class PlaceFinder {
 public:
  // `width` places each: at most ceil(width / racks) of them should be in one rack.
  PlaceFinder(const TargetTable& table, uint32_t width) : table_(table), width_(width) {}

  // `target` may be given places from now on, and has so much load. Or its load has changed.
  void Offer(uint32_t target, uint64_t load);
  bool offers(uint32_t target) const { return load_[target] != kNotOffered; }
  uint64_t load(uint32_t target) const { return load_[target]; }
  // The least loaded target in no domain of `others`, if possible in a rack that has room;
  // kNowhere when there is none. Equal loads are in an order that looks random, and another one
  // for each load: so the same targets do not always come together.
  uint32_t Find(std::span<const uint32_t> others) const;
  // The least loaded of all for which `wanted` holds.
  template <typename Wanted>
  uint32_t First(Wanted wanted) const {
    for (const auto& [load, tie, target] : order_) {
      if (wanted(target)) return target;
    }
    return kNowhere;
  }

 private:
  static constexpr uint64_t kNotOffered = UINT64_MAX;
  using Rank = std::tuple<uint64_t, uint64_t, uint32_t>;  // Load, tie, target.

  Rank RankOf(uint32_t target) const;

  const TargetTable& table_;
  const uint32_t width_;
  std::vector<uint64_t> load_ = std::vector<uint64_t>(table_.size(), kNotOffered);
  std::set<Rank> order_;
  std::set<uint32_t> racks_;
};

}  // namespace cairn::kv
