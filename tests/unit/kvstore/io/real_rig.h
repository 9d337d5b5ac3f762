// A rig whose nodes are real networks of this process, each on a port of its own.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kvstore/os/poller.h"
#include "kvstore/os/system_clock.h"
#include "tests/unit/kvstore/io/network_rig.h"

namespace cairn::kv {

// What the networks say: from warnings on, or all with CAIRN_RIG_LOG.
class RigLog final : public Log {
 public:
  void Write(LogLevel level, std::string_view message) override {
    if (level < LogLevel::kWarning && std::getenv("CAIRN_RIG_LOG") == nullptr) return;
    std::fprintf(stderr, "log: %.*s\n", static_cast<int>(message.size()), message.data());
  }
};

// `Transport` is a Network with port() and Stop(). What makes one must be alive when this is
// destroyed: nodes are made by the rig only.
template <typename Transport>
class RealRig : public NetworkRig {
 public:
  explicit RealRig(PollerEngine engine) {
    const PollerOptions options{.engine = engine};
    poller_ = Poller::Create(loop_, log_, options).value();
    clock_ = std::make_unique<SystemClock>(*poller_);
  }
  ~RealRig() override {
    while (!nodes_.empty()) Kill(nodes_.begin()->first);
    for (Task<void>& stop : stops_) RunUntil([&stop] { return stop.done(); });
  }

  Loop& loop() override { return loop_; }
  Clock& clock() override { return *clock_; }
  Network& node(NodeId id) override {
    std::unique_ptr<Transport>& node = nodes_[id];
    if (node != nullptr) return *node;
    node = Make(id, ports_[id]);
    ports_[id] = node->port();
    for (auto& [other, network] : nodes_) {
      KV_CHECK(Introduce(*network, id, ports_[id]).ok());
      KV_CHECK(Introduce(*node, other, ports_[other]).ok());
    }
    return *node;
  }
  void Kill(NodeId id) override {
    const auto found = nodes_.find(id);
    Transport* const dying = found->second.get();
    graves_.push_back(std::move(found->second));
    nodes_.erase(found);
    // Its handlers may still run: that is over at the end of the rig.
    stops_.push_back(dying->Stop());
    loop_.RunReady();
  }
  void RunUntil(const std::function<bool()>& done) override { poller_->RunUntil(done); }

 protected:
  // A node that listens at `port`, 0 for any; and where it finds another one.
  virtual std::unique_ptr<Transport> Make(NodeId id, uint16_t port) = 0;
  virtual Status Introduce(Transport& node, NodeId other, uint16_t port) = 0;

  Poller& poller() { return *poller_; }
  Log& log() { return log_; }

 private:
  Loop loop_;
  RigLog log_;
  std::unique_ptr<Poller> poller_;
  std::unique_ptr<SystemClock> clock_;
  std::map<NodeId, uint16_t> ports_;
  std::vector<std::unique_ptr<Transport>> graves_;
  std::vector<Task<void>> stops_;
  std::map<NodeId, std::unique_ptr<Transport>> nodes_;
};

}  // namespace cairn::kv
