// A simulated network: nodes, links with latency and loss, one-way partitions, crashes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "kvstore/async/gate.h"
#include "kvstore/base/random.h"
#include "kvstore/io/network.h"
#include "tests/sim/sim_clock.h"

namespace cairn::sim {

// One direction between two nodes. Chances are out of a million, per message.
struct LinkOptions {
  kv::Nanos latency_min = kv::Micros(20);
  kv::Nanos latency_max = kv::Micros(60);
  uint64_t bytes_per_second = 10'000'000'000;
  uint32_t loss = 0;
  uint32_t repeat = 0;   // Delivered twice: the handler runs twice.
  uint32_t reorder = 0;  // Delayed up to a hundred times the latency, and overtaken. Else in order.
};

// Before it is destroyed every call must be over: crash what still runs, then clock.RunUntilIdle().
class SimNetwork {
 public:
  SimNetwork(kv::Loop& loop, SimClock& clock, uint64_t seed);
  ~SimNetwork();

  // The network as node `id` sees it: pass it to that node's objects. Lives as long as this.
  kv::Network& node(kv::NodeId id);

  void SetLinks(const LinkOptions& options) { default_link_ = options; links_.clear(); }
  void SetLink(kv::NodeId source, kv::NodeId target, const LinkOptions& options) {
    links_[{source, target}] = options;
  }
  // Nothing gets from `source` to `target`, silently, until it is healed.
  void Cut(kv::NodeId source, kv::NodeId target);
  void Heal(kv::NodeId source, kv::NodeId target);
  // Both directions between `id` and everybody else.
  void Isolate(kv::NodeId id);
  void HealAll();

  // The node's calls in flight end with kUnavailable, its answers are never sent, and calls to it
  // are refused until it serves again.
  void Crash(kv::NodeId id);

  uint64_t messages_sent() const { return messages_sent_; }
  uint64_t messages_dropped() const { return messages_dropped_; }

 private:
  class Node;
  struct Message {
    kv::NodeId source;
    kv::NodeId target;
    uint64_t call = 0;
    uint64_t source_generation = 0;  // Of the caller: the answer of a crashed caller goes nowhere.
    enum class Kind : uint8_t { kRequest, kAnswer, kRefusal } kind = Kind::kRequest;
    kv::Bytes body = {};
    kv::Bytes payload = {};
    uint64_t room = 0;  // Of a request: the payload of its answer is at most this.

    uint64_t size() const { return body.size() + payload.size(); }
    Message Copy() const;
    // To this request.
    Message Refusal() const;
  };

  Node& NodeOf(kv::NodeId id);
  const LinkOptions& LinkOf(kv::NodeId source, kv::NodeId target) const;
  // Draws what happens to the message on its link.
  void Send(Message message);
  void SendCopy(Message message, const LinkOptions& link);
  void Deliver(uint64_t message_id);
  kv::Task<void> Answer(Message request);

  // Constant.
  kv::Loop& loop_;
  SimClock& clock_;

  kv::Random random_;
  LinkOptions default_link_;
  std::map<std::pair<kv::NodeId, kv::NodeId>, LinkOptions> links_;
  std::map<std::pair<kv::NodeId, kv::NodeId>, kv::Instant> last_arrival_;
  std::set<std::pair<kv::NodeId, kv::NodeId>> cuts_;
  std::set<kv::NodeId> isolated_;
  std::map<kv::NodeId, std::unique_ptr<Node>> nodes_;
  std::map<uint64_t, Message> in_flight_;
  uint64_t next_message_ = 1;
  uint64_t next_call_ = 1;
  uint64_t messages_sent_ = 0;
  uint64_t messages_dropped_ = 0;
  kv::Gate answers_;
};

}  // namespace cairn::sim
