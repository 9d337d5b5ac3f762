// Answers the requests of other nodes for the targets of this one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "kvstore/io/clock.h"
#include "kvstore/io/network.h"
#include "kvstore/peer/map_view.h"
#include "kvstore/peer/peer_messages.h"

namespace cairn::kv {

struct PeerServiceOptions {
  // Of shards being read or appended for one node, and for all; beyond it: kOverloaded.
  uint64_t source_bytes_max = 256 * kMiB;
  uint64_t bytes_max = 1 * kGiB;
  uint16_t version_max = peer::kVersion;  // Of the requests that are answered.
};

struct PeerServiceStats {
  uint64_t requests = 0;
  uint64_t requests_malformed = 0;
  uint64_t requests_overloaded = 0;
  uint64_t requests_late = 0;  // Dropped: nobody waited any more.
  uint64_t payloads_damaged = 0;  // Not what their senders had: refused.
  uint64_t bytes_read = 0;
  uint64_t bytes_appended = 0;
};

// Loop thread only.
class PeerService {
 public:
  // Null when the target is not here, or not any more. What it points to must stay for as long as
  // requests are in work.
  using FindTarget = std::function<TargetPort*(TargetId)>;

  // Answers what is asked of this node as a home (kvstore/home).
  using AnswerHome = std::function<Task<Bytes>(NodeId source, Bytes request)>;

  // `clock` and `map` must outlive it, and it the network that it serves.
  PeerService(Clock& clock, MapView& map, FindTarget find_target, PeerServiceOptions options);
  ~PeerService();

  // Until then kAskHome is refused with kUnavailable.
  void SetAnswerHome(AnswerHome answer_home) { answer_home_ = std::move(answer_home); }
  // Where an append finds no room, the keeper makes some, and it is tried again. It must outlive
  // this.
  void SetKeeper(SpaceKeeper& keeper) { keeper_ = &keeper; }

  // The network's handler from now on.
  void Serve(Network& network);
  // What the handler does.
  Task<Network::Reply> Answer(NodeId source, Bytes body, Bytes payload);

  const PeerServiceStats& stats() const { return stats_; }

 private:
  struct Work;
  class Share;

  Task<Network::Reply> DispatchShards(peer::Verb verb, Work work, ByteSpan fields);
  Task<Network::Reply> DispatchIndex(peer::Verb verb, Work work, ByteSpan fields);
  template <typename Message>
  Task<Network::Reply> Handle(Work work, ByteSpan fields);

  Task<Network::Reply> Do(Work work, peer::AppendRequest request);
  Task<Network::Reply> Do(Work work, peer::AppendRequestV1 request);
  Task<Network::Reply> Do(Work work, peer::ReadRequest request);
  Task<Network::Reply> Do(Work work, peer::ReadVerifiedRequest request);
  Task<Network::Reply> Do(Work work, peer::HoldsRequest request);
  Task<Network::Reply> Do(Work work, peer::DropRequest request);
  Task<Network::Reply> Do(Work work, peer::SyncRequest request);
  Task<Network::Reply> Do(Work work, peer::PublishRequest request);
  Task<Network::Reply> Do(Work work, peer::LookUpRequest request);
  Task<Network::Reply> Do(Work work, peer::ReadFiledRequest request);
  Task<Network::Reply> Do(Work work, peer::WithdrawRequest request);
  Task<Network::Reply> Do(Work work, peer::TouchRequest request);
  Task<Network::Reply> Do(Work work, peer::SaveUseRequest request);
  Task<Network::Reply> Do(Work work, peer::SaveRemovalRequest request);
  Task<Network::Reply> Do(Work work, peer::NameOfRequest request);
  Task<Network::Reply> Do(Work work, peer::ListFiledRequest request);
  Task<Network::Reply> Do(Work work, peer::SaveSpaceRequest request);
  Task<Network::Reply> Do(Work work, peer::ListSpacesRequest request);
  Task<Network::Reply> Do(Work work, peer::ProbeRequest request);
  Task<Network::Reply> Do(Work work, peer::GetMapRequest request);
  Task<Network::Reply> Do(Work work, peer::HomeRequest request);
  // `sent`: the checksum that its sender tells of the payload.
  Task<Network::Reply> Append(Work work, Manifest manifest, ShardIndex index,
                              std::optional<uint64_t> sent);
  Task<Status> AppendPatiently(const Work& work, const Manifest& manifest, ShardIndex index,
                               uint64_t checksum);

  peer::AnswerHead HeadOf(const TargetPort* target) const;
  template <typename Value>
  Network::Reply Say(const TargetPort* target, const Result<Value>& answer) const;
  Network::Reply SayDone(const TargetPort* target, const Status& outcome) const;
  // The bytes of a read, unless its time is over.
  Network::Reply SayBytes(const Work& work, const Status& outcome, Bytes payload);
  bool IsLate(const Work& work);
  bool Overloaded(NodeId source, uint64_t bytes);

  Clock& clock_;
  MapView& map_;
  const FindTarget find_target_;
  const PeerServiceOptions options_;
  AnswerHome answer_home_;
  SpaceKeeper* keeper_ = nullptr;
  PeerServiceStats stats_;
  std::map<NodeId, uint64_t> source_bytes_;
  uint64_t bytes_ = 0;
};

}  // namespace cairn::kv
