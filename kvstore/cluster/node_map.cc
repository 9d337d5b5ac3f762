// One fetch at a time: whoever tells of a newer map has it.
#include "kvstore/cluster/node_map.h"

#include <string_view>
#include <utility>

#include "kvstore/control/map_codec.h"
#include "kvstore/home/home_map.h"
#include "kvstore/types/group_hash.h"

namespace cairn::kv {
namespace {

constexpr Nanos kFetchTimeout = Seconds(2);

}  // namespace

void NodeMap::Take(std::shared_ptr<const ClusterMap> map) {
  if (map == nullptr || map->epoch() <= epoch()) return;
  map_ = std::move(map);
  if (on_change_) on_change_();
  const std::shared_ptr<Event> changed =
      std::exchange(changed_, std::make_shared<Event>(loop_));
  changed->Set();
}

Task<void> NodeMap::AwaitChange(Instant deadline) {
  const std::shared_ptr<Event> changed = changed_;
  co_await clock_.SleepUntil(deadline, changed.get());
}

Task<void> NodeMap::Stop() {
  caller_ = nullptr;
  return gate_.Close();
}

Bytes NodeMap::Encoded() const {
  if (map_ == nullptr) return {};
  const std::string bytes = EncodeWholeMap(*map_);
  return Bytes::CopyOf(AsBytes(bytes));
}

Status NodeMap::CheckIndexWriter(StripeId stripe, uint64_t epoch) const {
  if (map_ == nullptr) return Status(Code::kUnavailable, "this node has no map yet");
  return CheckWriter(map_->GroupOf(GroupHashOf(stripe)).since, epoch);
}

void NodeMap::OnNewer(NodeId peer, uint64_t epoch) {
  if (caller_ == nullptr || fetching_ || epoch <= this->epoch()) return;
  fetching_ = true;
  gate_.Hold(Fetch(peer));
}

Task<void> NodeMap::Fetch(NodeId peer) {
  const Instant deadline = clock_.Now() + kFetchTimeout;
  const auto bytes = co_await caller_->FetchMap(peer, deadline);
  fetching_ = false;
  if (!bytes.ok()) co_return;
  auto map = DecodeWholeMap(AsText(bytes.value()));
  if (map.ok()) {
    Take(std::move(map).value());
  } else {
    log_.Warning("cluster: the map of node " + std::to_string(peer.value) +
                 " does not parse: " + map.status().ToString());
  }
}

}  // namespace cairn::kv
