// Nodes of one process over loopback.
#include "kvstore/os/tcp_network.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tls_authority.h"
#include "tests/unit/kvstore/io/network_rig.h"
#include "tests/unit/kvstore/io/real_rig.h"

namespace cairn::kv {
namespace {

std::string AddressOf(uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

class TcpRig final : public RealRig<TcpNetwork> {
 public:
  TcpRig(PollerEngine engine, bool encrypted) : RealRig(engine) {
    if (!encrypted) return;
    testing::TlsAuthority authority(folder_.path(), "ca");
    tls_ = TlsContext::Load(authority.NewFiles()).value();
  }

 private:
  std::unique_ptr<TcpNetwork> Make(NodeId id, uint16_t port) override {
    const TcpNetworkOptions options{.self = id,
                                    .listen = AddressOf(port),
                                    .cluster = "rig",
                                    .secret = "a secret of the test rig",
                                    .tls = tls_,
                                    .reconnect_after = Millis(50)};
    return TcpNetwork::Create(poller(), clock(), log(), options).value();
  }
  Status Introduce(TcpNetwork& node, NodeId other, uint16_t port) override {
    return node.SetPeer(other, AddressOf(port));
  }

  testing::TemporaryFolder folder_;
  std::shared_ptr<const TlsContext> tls_;
};

}  // namespace

std::unique_ptr<NetworkRig> MakeTcpRig(bool force_epoll, bool encrypted) {
  return std::make_unique<TcpRig>(force_epoll ? PollerEngine::kEpoll : PollerEngine::kAuto,
                                  encrypted);
}

}  // namespace cairn::kv
