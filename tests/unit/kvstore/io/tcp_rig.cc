// Nodes of one process over loopback.
#include <map>
#include <set>

#include "kvstore/os/poller.h"
#include "kvstore/os/system_clock.h"
#include "kvstore/os/tcp_network.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tls_authority.h"
#include "tests/unit/kvstore/io/network_rig.h"

namespace cairn::kv {
namespace {

class TcpRig final : public NetworkRig {
 public:
  TcpRig(PollerEngine engine, bool encrypted) {
    if (encrypted) {
      testing::TlsAuthority authority(folder_.path(), "ca");
      tls_ = TlsContext::Load(authority.NewFiles()).value();
    }
    const PollerOptions options{.engine = engine};
    poller_ = Poller::Create(loop_, log_, options).value();
    clock_ = std::make_unique<SystemClock>(*poller_);
  }
  ~TcpRig() override {
    while (!nodes_.empty()) Kill(nodes_.begin()->first);
    for (Task<void>& stop : stops_) RunUntil([&stop] { return stop.done(); });
  }

  Loop& loop() override { return loop_; }
  Clock& clock() override { return *clock_; }
  Network& node(NodeId id) override {
    std::unique_ptr<TcpNetwork>& node = nodes_[id];
    if (node != nullptr) return *node;
    const TcpNetworkOptions options{.self = id,
                                    .listen = "127.0.0.1:" + std::to_string(ports_[id]),
                                    .cluster = "rig",
                                    .secret = "a secret of the test rig",
                                    .tls = tls_,
                                    .reconnect_after = Millis(50)};
    node = TcpNetwork::Create(*poller_, *clock_, log_, options).value();
    ports_[id] = node->port();
    for (auto& [other, network] : nodes_) {
      Introduce(*network, id);
      Introduce(*node, other);
    }
    return *node;
  }
  void Kill(NodeId id) override {
    const auto found = nodes_.find(id);
    TcpNetwork* const dying = found->second.get();
    graves_.push_back(std::move(found->second));
    nodes_.erase(found);
    // Its handlers may still run: that is over at the end of the rig.
    stops_.push_back(dying->Stop());
    loop_.RunReady();
  }
  void RunUntil(const std::function<bool()>& done) override { poller_->RunUntil(done); }

 private:
  void Introduce(TcpNetwork& node, NodeId other) {
    KV_CHECK(node.SetPeer(other, "127.0.0.1:" + std::to_string(ports_[other])).ok());
  }

  Loop loop_;
  NullLog log_;
  testing::TemporaryFolder folder_;
  std::shared_ptr<const TlsContext> tls_;
  std::unique_ptr<Poller> poller_;
  std::unique_ptr<SystemClock> clock_;
  std::map<NodeId, uint16_t> ports_;
  std::vector<std::unique_ptr<TcpNetwork>> graves_;
  std::vector<Task<void>> stops_;
  std::map<NodeId, std::unique_ptr<TcpNetwork>> nodes_;
};

}  // namespace

std::unique_ptr<NetworkRig> MakeTcpRig(bool force_epoll, bool encrypted) {
  return std::make_unique<TcpRig>(force_epoll ? PollerEngine::kEpoll : PollerEngine::kAuto,
                                  encrypted);
}

}  // namespace cairn::kv
