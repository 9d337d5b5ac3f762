// What is on its way to each peer and over which connection: what calling has in common, whatever
// carries it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kvstore/io/clock.h"
#include "kvstore/io/network.h"
#include "kvstore/io/network_stats.h"
#include "kvstore/os/poller.h"

namespace cairn::kv {

inline std::string NodeText(NodeId id) { return "node " + std::to_string(id.value); }

// Loop thread only.
class PeerCalls {
 private:
  // One of the connections to a peer; the first is for control, the others for data.
  struct Slot {
    uint64_t connection_id = 0;  // 0 while there is none.
    uint64_t bytes = 0;          // Of the calls that use it.
  };
  struct Peer {
    std::vector<Slot> slots;
    uint64_t bytes = 0;
    uint32_t calls = 0;
    Instant retry_at;  // Before then no connection is tried.
  };

 public:
  struct Limits {
    uint32_t data_connections = 0;  // To each peer.
    uint64_t peer_bytes_max = 0;    // Of payloads on their way, to and from one peer, and all.
    uint64_t bytes_max = 0;
    Nanos reconnect_after;
  };
  // Begins the connection of this id in this place, which Ended gives up again.
  using Connect = std::function<Status(NodeId peer, size_t slot, uint64_t connection_id)>;

  // Counts a call for as long as it is on its way. The PeerCalls must outlive it.
  class Share {
   public:
    Share(PeerCalls& owner, Peer& peer, Slot& slot, uint64_t bytes);
    Share(Share&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)),
          peer_(other.peer_),
          slot_(other.slot_),
          bytes_(other.bytes_),
          connection_id_(other.connection_id_) {}
    Share& operator=(Share&&) = delete;
    ~Share();

    // The connection that it was given, which may have ended since.
    uint64_t connection_id() const { return connection_id_; }

   private:
    PeerCalls* owner_;
    Peer& peer_;
    Slot& slot_;
    const uint64_t bytes_;
    const uint64_t connection_id_;
  };

  // The references must outlive it.
  PeerCalls(Poller& poller, const Clock& clock, Limits limits, NetworkStats& stats,
            Connect connect);

  // From now on it may be called; a connection that failed is tried again at once.
  void Meet(NodeId peer);
  // A call with room for `room` bytes of its answer: over the least busy connection of its kind.
  // kInvalid: larger than a message may be. kDeadline: too late. kOverloaded: as of the limits.
  // kUnavailable: no such peer, or it could not be reached a moment ago.
  Result<Share> Begin(NodeId peer, const Network::Outgoing& request, uint64_t room,
                      Instant deadline);
  // Calls that begin from now on get new connections: the present ones are ending.
  void Abandon(NodeId peer);
  // A connection could not be made: none is tried for `reconnect_after`, unless it was abandoned.
  void PutOff(NodeId peer, size_t slot, uint64_t connection_id);
  void Ended(NodeId peer, size_t slot, uint64_t connection_id);
  // Calls that begin from now on are kUnavailable.
  void Stop() { stopping_ = true; }

 private:
  Status Check(const Network::Outgoing& request, Instant deadline) const;
  // With a connection, begun if there was none.
  Result<Slot*> SlotFor(NodeId id, Peer& peer, bool has_payload);

  Poller& poller_;
  const Clock& clock_;
  const Limits limits_;
  NetworkStats& stats_;
  const Connect connect_;
  std::map<NodeId, Peer> peers_;  // None is ever removed.
  uint64_t bytes_ = 0;            // Of all calls on their way.
  uint64_t next_connection_id_ = 1;
  bool stopping_ = false;
};

}  // namespace cairn::kv
