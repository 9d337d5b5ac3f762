// One client: its lanes, what it attached to and registered, and its credits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kvstore/async/event.h"
#include "kvstore/async/gate.h"
#include "kvstore/lane/lane.h"
#include "kvstore/serve/region_table.h"

namespace cairn::kv {

class Session;

// One socket, from accept to its end.
struct Connection {
  Connection(Poller& poller, int socket, bool over_unix)
      : lane(poller, socket),
        is_unix(over_unix),
        requests(poller.loop()),
        opened(Poller::Now()) {}
  Lane lane;
  const bool is_unix;
  Gate requests;  // Being worked on; each holds the connection's memory.
  const Instant opened;
  std::shared_ptr<Session> session = nullptr;  // Null before the hello.
  bool is_control = false;
  std::optional<TokenNonce> challenge = {};  // Of the proof to come. A new one takes its place.
};

// Shared by its connections. Loop thread only.
class Session {
 public:
  Session(Loop& loop, RegionLimits limits, ServerStats& stats, PayloadMemory* network)
      : regions(limits, stats, network), lonely(loop) {}

  // What a request holds until its answer is sent.
  class Credit {
   public:
    Credit() = default;
    Credit(std::shared_ptr<Session> session, uint64_t bytes)
        : session_(std::move(session)), bytes_(bytes) {
      ++session_->requests_in_flight_;
      session_->bytes_in_flight_ += bytes_;
    }
    Credit(Credit&& other) noexcept
        : session_(std::exchange(other.session_, nullptr)), bytes_(other.bytes_) {}
    Credit& operator=(Credit&& other) noexcept {
      std::swap(session_, other.session_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Credit() {
      if (session_ == nullptr) return;
      --session_->requests_in_flight_;
      session_->bytes_in_flight_ -= bytes_;
    }

    // For a request that turns out to need more.
    void AddBytes(uint64_t bytes) {
      session_->bytes_in_flight_ += bytes;
      bytes_ += bytes;
    }

   private:
    std::shared_ptr<Session> session_;
    uint64_t bytes_ = 0;
  };
  bool HasRequests(uint32_t requests_max) const { return requests_in_flight_ < requests_max; }
  bool HasBytes(uint64_t bytes_max, uint64_t bytes) const {
    return bytes <= bytes_max && bytes_in_flight_ <= bytes_max - bytes;
  }

  // Closes every lane; the session ends when they have left.
  void End() {
    ended = true;
    for (Connection* connection : connections) connection->lane.Close();
  }
  void Leave(Connection* connection) {
    std::erase(connections, connection);
    if (connections.size() == 1 && ended) lonely.Set();
  }

  SessionId id;
  Id128 secret;  // Binds data lanes to it.
  std::string name;
  bool may_administer = false;
  std::set<NamespaceId> attached;
  RegionTable regions;
  std::vector<Connection*> connections;
  bool ended = false;
  bool timed_out = false;
  Event lonely;  // Ended, and only the control lane is left.

 private:
  uint32_t requests_in_flight_ = 0;
  uint64_t bytes_in_flight_ = 0;
};

}  // namespace cairn::kv
