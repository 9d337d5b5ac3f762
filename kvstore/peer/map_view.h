// What messages between nodes need of the cluster's map: its epoch, and its bytes.
#pragma once

#include <cstdint>

#include "kvstore/base/bytes.h"
#include "kvstore/base/status.h"
#include "kvstore/io/network.h"
#include "kvstore/types/ids.h"

namespace cairn::kv {

// Every request and every answer carries its sender's epoch. Loop thread only.
class MapView {
 public:
  virtual ~MapView() = default;

  virtual uint64_t epoch() const = 0;
  // The highest version of messages that all nodes speak; 0: not known.
  virtual uint16_t protocol() const = 0;
  // What PeerCaller::FetchMap gets. At most kMapSizeMax bytes.
  virtual Bytes Encoded() const = 0;
  // Whether a replica may carry out a write to the index of the stripe's group that was sent under
  // `epoch`: kConflict when the group has got another home since.
  virtual Status CheckIndexWriter(StripeId stripe, uint64_t epoch) const = 0;
  // `peer` has a map of this epoch, newer than ours. Called for each message that says so: must
  // not wait. FetchMap brings it.
  virtual void OnNewer(NodeId peer, uint64_t epoch) = 0;
};

inline constexpr uint64_t kMapSizeMax = 16 * kMiB;

}  // namespace cairn::kv
