// Requests to other nodes, with the epoch and the deadline that each carries.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "kvstore/io/clock.h"
#include "kvstore/io/network.h"
#include "kvstore/peer/map_view.h"
#include "kvstore/peer/peer_messages.h"

namespace cairn::kv {

// Loop thread only. All references must outlive it.
class PeerCaller {
 public:
  PeerCaller(Clock& clock, Network& network, MapView& map)
      : clock_(clock), network_(network), map_(map) {}

  // Once more over a new connection when the first one broke, within the deadline: for requests
  // that may be done twice.
  enum class Repeat : uint8_t { kNo, kOnce };

  struct Order {
    NodeId node;
    TargetId target;
    peer::Verb verb = peer::Verb::kProbe;
    std::vector<uint8_t> message = {};   // peer::Encode.
    std::vector<ByteSpan> payload = {};  // The caller's, until the task is done.
    MutableByteSpan into = {};           // Where the answer's payload lands.
    Instant deadline = {};
    Repeat repeat = Repeat::kNo;
  };
  struct Answer {
    peer::AnswerHead head;
    Bytes body;
    size_t fields_at = 0;
    size_t payload_size = 0;

    // A Status, and the value: for peer::ParseAnswer.
    ByteSpan fields() const { return body.span().subspan(fields_at); }
  };

  // Errors as of Network. A node that lets a deadline pass, and does not answer a small question
  // within 200 ms more, is asked nothing but probes for a second, or until it answers: kUnavailable
  // at once. When an answer tells of a newer map the MapView hears of it.
  Task<Result<Answer>> Ask(Order order);

  // What HomeService::Answer (kvstore/home) of that node returns.
  Task<Result<Bytes>> AskHome(NodeId node, Bytes request, Instant deadline);

  // The bytes of the peer's map, whatever its epoch.
  Task<Result<std::vector<uint8_t>>> FetchMap(NodeId node, Instant deadline);

  Clock& clock() { return clock_; }

 private:
  Task<Result<Network::Answer>> Send(const Order& order);
  Task<bool> IsAlive(NodeId node);
  bool IsSilent(const Order& order) const;

  Clock& clock_;
  Network& network_;
  MapView& map_;
  std::map<NodeId, Instant> silent_until_;  // Nodes that do not answer.
};

}  // namespace cairn::kv
