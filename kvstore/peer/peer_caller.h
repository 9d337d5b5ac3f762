// Requests to other nodes, with the epoch and the deadline that each carries.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "kvstore/async/event.h"
#include "kvstore/async/gate.h"
#include "kvstore/io/clock.h"
#include "kvstore/io/network.h"
#include "kvstore/peer/map_view.h"
#include "kvstore/peer/peer_messages.h"

namespace cairn::kv {

// Loop thread only. All references must outlive it.
class PeerCaller {
 public:
  PeerCaller(Loop& loop, Clock& clock, Network& network, MapView& map)
      : clock_(clock), network_(network), map_(map), stopping_(loop), gate_(loop) {}
  // Ends what it does in the background. No call may be in flight or follow.
  Task<void> Stop();

  // Once more over a new connection when the first one broke, within the deadline: for requests
  // that may be done twice.
  enum class Repeat : uint8_t { kNo, kOnce };

  struct Order {
    NodeId node;
    TargetId target;
    peer::Verb verb = peer::Verb::kProbe;
    uint16_t version = peer::kVersionMin;  // Of the message.
    std::vector<uint8_t> message = {};     // peer::Encode.
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

  // Errors as of Network. A node of which calls wait, and that answers none for a while, is asked a
  // small question. When that has no answer in time either, the node is silent: all its calls end
  // with kUnavailable, and every later one but a probe does so at once, until it answers (or for
  // 5 s: then somebody has to try). In time is what its answers take lately, as of RFC 6298, and
  // 50 to 200 ms; a while is half of it, and at least 50 ms.
  // When an answer tells of a newer map the MapView hears of it.
  Task<Result<Answer>> Ask(Order order);

  // What HomeService::Answer (kvstore/home) of that node returns.
  Task<Result<Bytes>> AskHome(NodeId node, Bytes request, Instant deadline);

  // The bytes of the peer's map, whatever its epoch.
  Task<Result<std::vector<uint8_t>>> FetchMap(NodeId node, Instant deadline);

  Clock& clock() { return clock_; }
  // See Network.
  bool gives_up_alone() const { return network_.gives_up_alone(); }
  // See MapView.
  uint16_t protocol() const { return map_.protocol(); }

 private:
  struct Peer {
    uint32_t waiting = 0;  // Calls on their way.
    bool watched = false;
    Instant heard_at;      // Its last answer, or when the first of the waiting calls began.
    Instant silent_until;
    std::optional<Nanos> smoothed = {};  // How long its answers take,
    Nanos variation;                     // and by how much that varies.

    void Learn(Nanos took);
    Nanos Patience() const;
  };

  Task<Result<Network::Answer>> Send(const Order& order);
  // For as long as calls wait, and while it is silent.
  Task<void> Watch(NodeId node);
  Task<bool> IsAlive(NodeId node, Nanos patience);
  bool IsSilent(const Order& order) const;

  Clock& clock_;
  Network& network_;
  MapView& map_;
  std::map<NodeId, Peer> peers_;  // None is ever removed.
  Event stopping_;
  Gate gate_;
};

}  // namespace cairn::kv
