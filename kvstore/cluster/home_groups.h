// The index groups that this node is the home of: since when, what they hold, and whether their
// replicas are known to be equal.
#pragma once

#include <functional>
#include <vector>

#include "kvstore/client/home.h"
#include "kvstore/control/cluster_map.h"
#include "kvstore/home/map_homes.h"
#include "kvstore/home/tenure_table.h"
#include "kvstore/node/index_view.h"

namespace cairn::kv {

// Loop thread only. All references must outlive it.
//
// A group that comes here is counted (what its namespaces hold) and then compared: until then what
// the replica here lacks may be filed on another one, and is not taken for garbage.
class HomeGroups final : public HomeTenure {
 public:
  // `holds_lease`: whether this node is surely a member. While it is not, it gives no leases: its
  // groups may have got another home. It stays home until a newer map says otherwise, so that an
  // outage of the control store stops nothing else.
  HomeGroups(const Clock& clock, const HomeMap& homes, TenureOptions options,
             std::function<bool()> holds_lease);

  Tenure Of(uint16_t group_hash) const override;

  // Before it no group is here. Both must outlive it.
  void Begin(Home& home, const LocalTargets& own);
  // The map has changed, or Begin was called.
  void Update(const ClusterMap& map);
  // Nothing is here any more.
  void End();

  std::vector<uint32_t> Here() const;
  // The epoch since which the group is here; 0: it is not.
  uint64_t SinceOf(uint32_t group) const { return groups_[group].since; }
  // All replicas have what any has of the group, as of the home that came at `since`.
  void NoteCompared(uint32_t group, uint64_t since);
  bool IsCompared(uint32_t group) const { return groups_[group].compared; }

 private:
  struct Group {
    uint64_t since = 0;
    TargetId replica;  // The one here, whose stripes are counted.
    bool compared = false;
  };
  struct Turn {
    enum class Kind : uint8_t { kStays, kComes, kGoes };
    Kind kind = Kind::kStays;
    TargetId replica;
  };

  void Count(const std::vector<Turn>& turns, const ClusterMap& map);

  const HomeMap& homes_;
  TenureTable table_;
  const Clock& clock_;
  const std::function<bool()> holds_lease_;
  Home* home_ = nullptr;
  const LocalTargets* own_ = nullptr;
  std::vector<Group> groups_;
};

}  // namespace cairn::kv
