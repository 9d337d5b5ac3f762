// The newest cluster map that this node has heard of: from the control store, or from a peer.
#pragma once

#include <functional>
#include <memory>

#include "kvstore/async/event.h"
#include "kvstore/async/gate.h"
#include "kvstore/base/log.h"
#include "kvstore/control/cluster_map.h"
#include "kvstore/peer/map_view.h"
#include "kvstore/peer/peer_caller.h"

namespace cairn::kv {

// Loop thread only. All references must outlive it; Stop before it is destroyed.
class NodeMap final : public MapView {
 public:
  NodeMap(Loop& loop, Clock& clock, Log& log)
      : clock_(clock), log_(log), changed_(std::make_shared<Event>(loop)), loop_(loop),
        gate_(loop) {}

  // A map that is not newer than the present one is ignored.
  void Take(std::shared_ptr<const ClusterMap> map);
  // Told of each map that is taken from now on.
  void SetOnChange(std::function<void()> on_change) { on_change_ = std::move(on_change); }
  // From now on maps are fetched from peers, too.
  void FetchBy(PeerCaller& caller) { caller_ = &caller; }

  const std::shared_ptr<const ClusterMap>& map() const { return map_; }  // Null before the first.
  // Until the next map is taken, or the time is up.
  Task<void> AwaitChange(Instant deadline);
  Task<void> Stop();

  uint64_t epoch() const override { return map_ == nullptr ? 0 : map_->epoch(); }
  uint16_t protocol() const override { return map_ == nullptr ? 0 : map_->protocol(); }
  Bytes Encoded() const override;
  Status CheckIndexWriter(StripeId stripe, uint64_t epoch) const override;
  void OnNewer(NodeId peer, uint64_t epoch) override;

 private:
  Task<void> Fetch(NodeId peer);

  Clock& clock_;
  Log& log_;
  std::function<void()> on_change_;
  PeerCaller* caller_ = nullptr;
  std::shared_ptr<const ClusterMap> map_;
  std::shared_ptr<Event> changed_;  // Set when the next map is taken. Shared with who waits.
  bool fetching_ = false;
  Loop& loop_;
  Gate gate_;
};

}  // namespace cairn::kv
