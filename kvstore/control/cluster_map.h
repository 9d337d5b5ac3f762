// The cluster as one value: who is there, who holds which part of the index, where stripes may go.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kvstore/base/random.h"
#include "kvstore/base/result.h"
#include "kvstore/io/network.h"
#include "kvstore/types/ids.h"
#include "kvstore/types/limits.h"

namespace cairn::kv {

inline constexpr uint32_t kNodesMax = 4096;
inline constexpr uint32_t kTargetsMax = (1 << 16) - 1;
inline constexpr uint32_t kStripeSetsMax = 1 << 16;
inline constexpr uint32_t kGroupBitsMin = 4;
inline constexpr uint32_t kGroupBitsMax = 16;
inline constexpr uint32_t kNodeTextMax = 128;  // Of a name, a rack or an address, in bytes.
inline constexpr uint32_t kAddressesMax = 8;
inline constexpr uint8_t kWeightFull = 100;

// Nobody: node ids and target ids are never 0.
inline constexpr NodeId kNoNode{0};
inline constexpr TargetId kNoTarget{0};

enum class MemberState : uint8_t {
  kJoining,  // There, but not for long yet: read from; not written to, and no home.
  kUp,
  kSuspect,  // Not heard of: not written to, and no home; but nothing is moved yet.
  kLost,     // Its places go to others.
};

// Which two targets of one stripe set, or of one index group, may not have in common.
enum class FailureDomain : uint8_t {
  kTarget,  // Nothing: one machine's targets.
  kNode,    // Nor their rack, as far as there are enough racks.
};

// Fixed when the cluster is made.
struct ClusterShape {
  uint8_t group_bits = 12;
  // The widest stripe. A set has data_shards + parity_shards targets, or as many as there are
  // domains while these are fewer, but at least parity_shards + 1.
  uint8_t data_shards = 10;
  uint8_t parity_shards = 2;
  FailureDomain domain = FailureDomain::kNode;
  bool operator==(const ClusterShape&) const = default;

  uint32_t group_count() const { return 1u << group_bits; }
  uint32_t set_width() const { return uint32_t{data_shards} + parity_shards; }
};

struct NodeEntry {
  NodeId id;
  std::string name;
  std::string rack;                         // May be empty: then all such nodes share one rack.
  std::vector<std::string> addresses = {};  // Of its peer service, best first.
  uint16_t protocol_min = 1;
  uint16_t protocol_max = 1;
  MemberState state = MemberState::kJoining;
  bool draining = false;  // Is to be emptied: not written to; holds no index group and no home.
  bool operator==(const NodeEntry&) const = default;
};

struct TargetEntry {
  TargetId id;
  uint16_t slot = 0;  // Its number in encoded maps, while it is in the map.
  NodeId node;
  uint64_t capacity = 0;  // Bytes.
  // Its own or its node's, whichever is worse.
  MemberState state = MemberState::kJoining;
  bool draining = false;
  uint8_t weight_percent = kWeightFull;  // Slow start: the share of its capacity that puts see.
  uint64_t since = 0;  // The epoch of the last change of `state` or `draining`.
  bool operator==(const TargetEntry&) const = default;

  // May take new shards.
  bool writable() const { return state == MemberState::kUp && !draining; }
};

// Where the shards of one stripe may go together, in distinct failure domains. A target that is not
// writable() has to be skipped: the stripe is the narrower.
struct StripeSet {
  uint32_t id = 0;
  std::vector<TargetId> targets;
  uint32_t weight = 0;  // Its share of puts, in MiB of what its weakest target has for it.
  bool operator==(const StripeSet&) const = default;
};

// One part of the index, and who holds it. The first target's node is its home.
struct Group {
  std::array<TargetId, kIndexReplicas> targets{};  // kNoTarget: nobody yet.
  uint8_t filling = 0;  // Bit i: targets[i] does not have all of it yet.
  uint64_t since = 0;   // The epoch from which on the present home is home.
  bool operator==(const Group&) const = default;

  bool IsFilling(size_t place) const { return (filling >> place & 1) != 0; }
  // Whether it counts what the replica there has. Not while it is being filled: some of it may have
  // been removed before it got the place. Unless the home is, too: there is nothing better then.
  bool IsSource(size_t place) const { return !IsFilling(place) || IsFilling(0); }
};

// What a map is made of. Planners change one; readers have a ClusterMap.
struct MapContent {
  uint64_t epoch = 0;
  ClusterShape shape;
  std::vector<NodeEntry> nodes;      // By ascending id.
  std::vector<TargetEntry> targets;  // By ascending slot.
  std::vector<StripeSet> sets;       // By ascending id.
  std::vector<Group> groups;         // shape.group_count() of them.
  bool operator==(const MapContent&) const = default;
};

// Epoch 1 of a new cluster: nobody is there. kInvalid when the shape is out of bounds.
Result<MapContent> EmptyMap(const ClusterShape& shape);

// Immutable, and shared: whoever began something under a map keeps that map until it is done.
class ClusterMap {
 public:
  // kInvalid, with words, unless all of it holds together: order, bounds, references, and distinct
  // failure domains within each set and each group.
  static Result<std::shared_ptr<const ClusterMap>> Create(MapContent content);

  const MapContent& content() const { return content_; }
  uint64_t epoch() const { return content_.epoch; }
  const ClusterShape& shape() const { return content_.shape; }
  std::span<const NodeEntry> nodes() const { return content_.nodes; }
  std::span<const TargetEntry> targets() const { return content_.targets; }
  std::span<const StripeSet> sets() const { return content_.sets; }
  std::span<const Group> groups() const { return content_.groups; }

  // Null when it is not in the map. By binary search.
  const NodeEntry* FindNode(NodeId id) const;
  const TargetEntry* FindTarget(TargetId id) const;

  // `hash` is the first 16 bits of a run's hash, and of the ids of its stripes.
  uint32_t GroupIndexOf(uint16_t hash) const { return hash >> (16 - content_.shape.group_bits); }
  const Group& GroupOf(uint16_t hash) const { return content_.groups[GroupIndexOf(hash)]; }
  // The node of the group's first target; kNoNode when it has none.
  NodeId HomeOf(const Group& group) const;

  // A set drawn by weight; null when there is none that takes puts.
  const StripeSet* DrawSet(Random& random) const;

  // Of its nodes.
  uint16_t protocol() const { return protocol_; }

 private:
  explicit ClusterMap(MapContent content);

  const MapContent content_;
  std::vector<std::pair<TargetId, uint32_t>> target_order_;  // By id: where in content_.targets.
  std::vector<uint64_t> set_weights_;                        // Sums up to and including each set.
  uint16_t protocol_ = 0;
};

// The highest version that all nodes speak which are not lost and not joining; 0 when none is.
uint16_t CommonProtocol(std::span<const NodeEntry> nodes);

// The failure domain of a target as a number: equal numbers may not stand in one set or group.
uint64_t DomainOf(const ClusterShape& shape, const TargetEntry& target);

}  // namespace cairn::kv
