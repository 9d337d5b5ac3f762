// Measures reads of a target on another node, over loopback TCP, against a bare socket.
//
//   peer_bench [--quick] [--json FILE]
// The server has a thread of its own. Its target is memory: what is measured is the way between.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kvstore/os/poller.h"
#include "kvstore/os/system_clock.h"
#include "kvstore/os/tcp_network.h"
#include "kvstore/peer/peer_service.h"
#include "kvstore/peer/peer_target.h"
#include "tests/bench/bench_options.h"
#include "tests/bench/socket_figures.h"
#include "tests/unit/kvstore/client/fake_target.h"

namespace cairn::bench {
namespace {

using kv::kKiB;
using kv::kMiB;

constexpr kv::NodeId kServer{1};
constexpr kv::NodeId kClient{2};
constexpr uint64_t kTarget = 1;
constexpr uint32_t kLarge = 4 * kMiB;
constexpr uint32_t kSmall = 256 * kKiB;

class OneMap final : public kv::MapView {
 public:
  uint64_t epoch() const override { return 1; }
  uint16_t protocol() const override { return kv::peer::kVersion; }
  kv::Bytes Encoded() const override { return {}; }
  kv::Status CheckIndexWriter(kv::StripeId, uint64_t) const override { return {}; }
  void OnNewer(kv::NodeId, uint64_t) override {}
};

// A thread's loop, and the node on it.
class Node {
 public:
  Node(kv::NodeId self, const std::string& listen) {
    poller_ = kv::Poller::Create(loop_, log_, {}).value();
    clock_ = std::make_unique<kv::SystemClock>(*poller_);
    network_ = kv::TcpNetwork::Create(*poller_, *clock_, log_, {.self = self, .listen = listen})
                   .value();
  }
  kv::Loop& loop() { return loop_; }
  kv::Poller& poller() { return *poller_; }
  kv::Clock& clock() { return *clock_; }
  kv::TcpNetwork& network() { return *network_; }
  OneMap& map() { return map_; }

 private:
  kv::Loop loop_;
  kv::NullLog log_;
  OneMap map_;
  std::unique_ptr<kv::Poller> poller_;
  std::unique_ptr<kv::SystemClock> clock_;
  std::unique_ptr<kv::TcpNetwork> network_;
};

kv::StripeId StripeOf(uint64_t i) { return kv::StripeId{{1, i}}; }

class Server {
 public:
  explicit Server(uint64_t shards) : thread_([this, shards] { Run(shards); }) {
    while (port_ == 0) std::this_thread::yield();
  }
  ~Server() {
    stop_ = true;
    loop_->Post([] {});
    thread_.join();
  }
  uint16_t port() const { return port_; }

 private:
  void Run(uint64_t shards) {
    kv::FakeTarget target(kTarget);
    for (uint64_t i = 0; i < shards; ++i) {
      target.shards[StripeOf(i)] = {.index = {}, .bytes = kv::Bytes(kLarge), .checksum = 0};
    }
    Node node(kServer, "127.0.0.1:0");
    kv::PeerService service(node.clock(), node.map(), [&](kv::TargetId) { return &target; }, {});
    service.Serve(node.network());
    loop_ = &node.loop();
    port_ = node.network().port();
    node.poller().Run(stop_);
    node.poller().Await(node.network().Stop());
  }

  std::atomic<bool> stop_{false};
  std::atomic<uint16_t> port_{0};
  kv::Loop* loop_ = nullptr;  // Valid once there is a port.
  std::thread thread_;
};

// Reads `count` ranges, one after another of one reader.
kv::Task<void> ReadRanges(kv::PeerTarget& target, uint32_t unit, uint64_t first, size_t count) {
  kv::Bytes into(unit);
  for (size_t i = 0; i < count; ++i) {
    const kv::SegmentLog::Range range{.stripe = StripeOf((first + i) % 8), .index = {},
                                      .offset = 0, .into = into.span(), .checksum = {},
                                      .checked_size = 0};
    const kv::Status outcome = co_await target.Read(range);
    Must(outcome.ok(), outcome.ToString());
  }
}

double ReadThroughPeer(Node& node, kv::PeerTarget& target, uint32_t unit, size_t count,
                       size_t depth) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<kv::Task<void>> readers;
  for (size_t i = 0; i < depth; ++i) readers.push_back(ReadRanges(target, unit, i, count / depth));
  for (kv::Task<void>& reader : readers) node.poller().Await(std::move(reader));
  return Since(begin);
}

std::vector<Figure> Run(const Options& options) {
  Server server(8);
  Node node(kClient, "");
  Must(node.network().SetPeer(kServer, "127.0.0.1:" + std::to_string(server.port())).ok(),
       "no address");
  kv::PeerCaller caller(node.loop(), node.clock(), node.network(), node.map());
  const kv::PeerTargetOptions patient{.read_timeout = kv::Seconds(20)};
  kv::PeerTarget target(node.loop(), caller, kServer, kv::TargetId{kTarget}, patient);
  std::vector<Figure> figures;
  const uint64_t total = (options.quick ? 256 : 2048) * kMiB;
  for (const uint32_t unit : {kLarge, kSmall}) {
    const size_t depth = unit == kLarge ? 4 : 16;
    const size_t count = total / unit;
    std::vector<double> through_peer;
    std::vector<double> bare;
    for (int round = 0; round < 4; ++round) {
      const double megabytes = static_cast<double>(total) / 1e6;
      const double seconds = ReadThroughPeer(node, target, unit, count, depth);
      const double socket = CopyThroughSocket(unit, count);
      if (round == 0) continue;  // Warms both up.
      through_peer.push_back(megabytes / seconds);
      bare.push_back(megabytes / socket);
    }
    const std::string name = unit == kLarge ? "peer.read.4MiB" : "peer.read.256KiB";
    figures.push_back({name, Median(through_peer), Median(bare), "bare socket"});
  }
  node.poller().Await(target.Stop());
  node.poller().Await(caller.Stop());
  node.poller().Await(node.network().Stop());
  return figures;
}

}  // namespace
}  // namespace cairn::bench

int main(int count, char** arguments) {
  const cairn::bench::Options options = cairn::bench::ParseOptions(count, arguments);
  cairn::bench::Report(cairn::bench::Run(options), options.json);
  return 0;
}
