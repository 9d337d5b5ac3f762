// Who is the home of which runs, and since when: what this layer needs of the cluster's map.
#pragma once

#include <string>

#include "kvstore/base/status.h"
#include "kvstore/base/time.h"
#include "kvstore/io/network.h"
#include "kvstore/types/group_hash.h"

namespace cairn::kv {

// Loop thread only. An answer holds until the next await.
class HomeMap {
 public:
  virtual ~HomeMap() = default;

  virtual NodeId self() const = 0;
  virtual uint64_t epoch() const = 0;
  // The home of the group that runs with this hash are in; nobody: NodeId{0}. This node itself only
  // as long as it may be sure of it: until its own lease of being a member ends.
  virtual NodeId HomeOf(uint16_t group_hash) const = 0;
  // The epoch from which on that node is the home.
  virtual uint64_t HomeSince(uint16_t group_hash) const = 0;
  // False while this node's replica of the group may lack what others have.
  virtual bool IsWhole(uint16_t group_hash) const = 0;
  // There are 2^group_bits groups: the first so many bits of a hash are the number of its group.
  virtual uint8_t group_bits() const = 0;
  // Somebody has a map of this epoch, which is higher than ours: get it.
  virtual void NoteEpoch(uint64_t epoch) = 0;
};

// Whether a replica may carry out a write to a group's index that was sent under `epoch`, when the
// group has had its home since the epoch `home_since`. kConflict: it has got another one meanwhile,
// and the sender may be the one that it had before.
inline Status CheckWriter(uint64_t home_since, uint64_t epoch) {
  if (epoch >= home_since) return Status();
  return Status(Code::kConflict, "the index group has another home since epoch " +
                                  std::to_string(home_since));
}

}  // namespace cairn::kv
