// A whole store whose twelve targets lie on twelve other nodes: simulated with faults, and on TCP.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "kvstore/client/striped_store.h"
#include "kvstore/node/local_target.h"
#include "kvstore/peer/peer_service.h"
#include "kvstore/peer/peer_target.h"
#include "tests/sim/memory_metadata.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_network.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/kvstore/client/local_home.h"
#include "tests/unit/kvstore/client/store_fixture.h"
#include "tests/unit/kvstore/peer/target_world.h"

namespace cairn::kv {
namespace {

using testing::IsOk;

constexpr NodeId kClient{1};
constexpr uint32_t kServers = 12;
constexpr uint32_t kBlockSize = 1 << 20;
constexpr NodeId ServerId(uint32_t i) { return NodeId{100 + i}; }

// The one node that runs the store, over what the others serve.
class ClientNode {
 public:
  ClientNode(Loop& loop, Clock& clock, Network& network, const std::vector<TargetId>& targets)
      : caller_(loop, clock, network, map_) {
    std::vector<TargetPort*> ports;
    for (uint32_t i = 0; i < targets.size(); ++i) {
      peers_.push_back(std::make_unique<PeerTarget>(loop, caller_, ServerId(i), targets[i],
                                                    PeerTargetOptions()));
      ports.push_back(peers_.back().get());
    }
    set_ = std::make_unique<TargetSet>(clock, ports);
    StripedStoreOptions options;
    options.shard_size_max = 2 * kMiB;
    options.cache.bytes_max = 0;
    home_ = std::make_unique<LocalHome>(LocalHome::Parts{
        .loop = loop, .clock = clock, .random = random_, .log = log_, .targets = *set_});
    const StripedStoreParts parts{.loop = loop,
                                  .clock = clock,
                                  .workers = workers_,
                                  .random = random_,
                                  .log = log_,
                                  .targets = *set_,
                                  .placement = home_->placement,
                                  .home = home_->home,
                                  .index = home_->home.index(),
                                  .space_store = home_->space_store,
                                  .keeper = keeper_};
    store_ = std::make_unique<StripedStore>(parts, options);
  }

  bool HasHeardOfAll() const {
    return std::all_of(peers_.begin(), peers_.end(),
                       [](const auto& peer) { return peer->free_bytes() > 0; });
  }
  Task<Status> Open() {
    KV_CO_RETURN_IF_ERROR(co_await store_->LoadSpaces());
    NamespaceOptions options;
    options.name = "tests";
    const auto space = co_await store_->Attach(options);
    if (space.ok()) space_ = space.value();
    co_return space.status();
  }
  Task<Status> Put(uint64_t i) {
    const Bytes bytes = BytesOf(i);
    ChainPut put{.space = space_, .chain = {IdOf(i)}, .blocks = {}};
    put.blocks.push_back({IdOf(i), bytes.span()});
    const std::vector<Status> outcomes = co_await store_->Put(std::move(put));
    co_return outcomes[0];
  }
  // The outcome; kCorrupt when the bytes are not those that were put.
  Task<Status> Get(uint64_t i) {
    Bytes into(kBlockSize);
    std::vector<BlockRead> reads{{.id = IdOf(i), .into = into.span()}};
    const std::vector<BlockId> chain(1, IdOf(i));
    const auto results = co_await store_->Get(space_, chain, std::move(reads), kNever);
    if (!results[0].status.ok()) co_return results[0].status;
    const Bytes wanted = BytesOf(i);
    const bool same = std::equal(wanted.data(), wanted.data() + kBlockSize, into.data());
    co_return same ? Status() : Status(Code::kCorrupt, "wrong bytes");
  }
  Task<void> Stop() {
    co_await store_->Stop();
    for (const auto& peer : peers_) co_await peer->Stop();
    co_await caller_.Stop();
  }

  const StoreStats& stats() { return store_->stats(); }

 private:
  static BlockId IdOf(uint64_t i) { return BlockId{{i * 0x9e3779b97f4a7c15, i}}; }
  static Bytes BytesOf(uint64_t i) {
    Bytes bytes(kBlockSize);
    Random random(i);
    random.Fill(bytes.span());
    return bytes;
  }

  FakeMap map_;
  PeerCaller caller_;
  InlineWorkers workers_;
  Random random_{5};
  NullLog log_;
  FakeKeeper keeper_;
  std::vector<std::unique_ptr<PeerTarget>> peers_;
  std::unique_ptr<TargetSet> set_;
  std::unique_ptr<LocalHome> home_;
  std::unique_ptr<StripedStore> store_;
  NamespaceId space_;
};

// --- Simulated ----------------------------------------------------------------------------------

class SimulatedCluster : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<TargetId> ids;
    for (uint32_t i = 0; i < kServers; ++i) ids.push_back(StartServer(i));
    client_ = std::make_unique<ClientNode>(loop_, clock_, network_.node(kClient), ids);
    clock_.RunUntil([this] { return client_->HasHeardOfAll(); });
    ASSERT_THAT(clock_.Await(client_->Open()), IsOk());
    for (uint64_t i = 0; i < kBlocks; ++i) ASSERT_THAT(clock_.Await(client_->Put(i)), IsOk()) << i;
  }
  void TearDown() override {
    network_.HealAll();
    clock_.Await(client_->Stop());
    clock_.RunUntilIdle();
    for (const Server& server : servers_) (void)clock_.Await(server.target->log().Stop());
  }

  TargetId StartServer(uint32_t i) {
    Server server;
    const sim::SimDiskOptions disk_options{.size = 64 * kKiB + 16 * 4 * kMiB, .seed = i + 1};
    server.disk = std::make_unique<sim::SimDisk>(loop_, clock_, disk_options);
    const sim::MemoryMetadataOptions metadata_options{.seed = i + 1};
    server.metadata = std::make_unique<sim::MemoryMetadata>(clock_, metadata_options);
    TargetMedium medium;
    medium.disk = server.disk->Open();
    medium.metadata = server.metadata->Open();
    const SegmentLog::Parts parts{.loop = loop_, .clock = clock_, .workers = workers_,
                                  .disk = *medium.disk, .metadata = *medium.metadata,
                                  .random = random_, .log = log_};
    const SegmentLogOptions log_options{.segment_size = 4 * kMiB};
    auto log = clock_.Await(SegmentLog::Open(parts, log_options)).value();
    auto index = clock_.Await(IndexReplica::Open(*medium.metadata, workers_, log_)).value();
    server.target = std::make_unique<LocalTarget>(clock_, std::move(medium), std::move(log),
                                                  std::move(index));
    LocalTarget* const target = server.target.get();
    const auto find = [target](TargetId id) { return id == target->id() ? target : nullptr; };
    server.service = std::make_unique<PeerService>(clock_, map_, find, PeerServiceOptions());
    server.service->Serve(network_.node(ServerId(i)));
    servers_.push_back(std::move(server));
    return target->id();
  }
  void ExpectAllExact() {
    for (uint64_t i = 0; i < kBlocks; ++i) {
      const Instant began = clock_.Now();
      EXPECT_THAT(clock_.Await(client_->Get(i)), IsOk()) << i;
      EXPECT_LT((clock_.Now() - began).value, Seconds(3).value) << i;
    }
  }
  // From the server to the client.
  void SetLatency(uint32_t i, Nanos latency) {
    network_.SetLink(ServerId(i), kClient, {.latency_min = latency, .latency_max = latency});
  }

  static constexpr uint64_t kBlocks = 24;
  struct Server {
    std::unique_ptr<sim::SimDisk> disk;
    std::unique_ptr<sim::MemoryMetadata> metadata;
    std::unique_ptr<LocalTarget> target;
    std::unique_ptr<PeerService> service;
  };
  Loop loop_;
  sim::SimClock clock_{loop_};
  sim::SimNetwork network_{loop_, clock_, 3};
  InlineWorkers workers_;
  Random random_{7};
  NullLog log_;
  FakeMap map_;
  std::vector<Server> servers_;
  std::unique_ptr<ClientNode> client_;
};

TEST_F(SimulatedCluster, WhatWasPutReadsBackExact) {
  ExpectAllExact();
  EXPECT_EQ(client_->stats().degraded_reads, 0u);
}

TEST_F(SimulatedCluster, ReadsGoOnWithTwoNodesCrashed) {
  network_.Crash(ServerId(3));
  network_.Crash(ServerId(7));
  ExpectAllExact();
  EXPECT_GT(client_->stats().degraded_reads, 0u);
}

TEST_F(SimulatedCluster, ReadsGoOnWithTwoNodesThatHearAndAreNotHeardAndPutsWithOne) {
  network_.Cut(ServerId(0), kClient);
  network_.Cut(ServerId(11), kClient);
  ExpectAllExact();
  EXPECT_GT(client_->stats().degraded_reads, 0u);
  network_.Heal(ServerId(11), kClient);
  clock_.RunUntil(clock_.Now() + Seconds(6));  // It is not suspect any more.
  for (uint64_t i = 100; i < 104; ++i) EXPECT_THAT(clock_.Await(client_->Put(i)), IsOk()) << i;
  for (uint64_t i = 100; i < 104; ++i) EXPECT_THAT(clock_.Await(client_->Get(i)), IsOk()) << i;
}

TEST_F(SimulatedCluster, ASlowNodeIsReadAround) {
  for (int round = 0; round < 4; ++round) ExpectAllExact();  // What is usual is learnt.
  SetLatency(5, Millis(20));  // Slow, not silent.
  for (int round = 0; round < 4; ++round) ExpectAllExact();
  EXPECT_GT(client_->stats().hedges_won, 0u);
}

TEST_F(SimulatedCluster, LossAndRepetitionOnEveryLinkCostNothingButTime) {
  network_.SetLinks({.loss = 10'000, .repeat = 50'000, .reorder = 50'000});
  for (uint64_t i = 200; i < 210; ++i) (void)clock_.Await(client_->Put(i));
  for (uint64_t i = 0; i < kBlocks; ++i) {
    const Status outcome = clock_.Await(client_->Get(i));
    EXPECT_NE(outcome.code(), Code::kCorrupt) << i;
  }
  network_.SetLinks({});
  clock_.RunUntil(clock_.Now() + Seconds(6));  // Nobody is suspect any more.
  ExpectAllExact();
}

// --- TCP ----------------------------------------------------------------------------------------

class ClusterOnTcp : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<TargetId> ids;
    rig_->node(kClient);
    for (uint32_t i = 0; i < kServers; ++i) {
      targets_.push_back(std::make_unique<FakeTarget>(i + 1));
      FakeTarget* const target = targets_.back().get();
      const auto find = [target](TargetId id) { return id == target->id() ? target : nullptr; };
      services_.push_back(
          std::make_unique<PeerService>(rig_->clock(), map_, find, PeerServiceOptions()));
      services_.back()->Serve(rig_->node(ServerId(i)));
      ids.push_back(target->id());
    }
    client_ = std::make_unique<ClientNode>(rig_->loop(), rig_->clock(), rig_->node(kClient), ids);
    rig_->RunUntil([this] { return client_->HasHeardOfAll(); });
    ASSERT_THAT(rig_->Await(client_->Open()), IsOk());
  }
  void TearDown() override {
    rig_->Await(client_->Stop());
    client_.reset();
    rig_.reset();
  }
  Task<void> ReadAll(uint64_t first, uint64_t blocks) {
    for (uint64_t round = 0; round < 8; ++round) {
      for (uint64_t i = 0; i < blocks; ++i) {
        const Status outcome = co_await client_->Get((first + i) % blocks);
        EXPECT_THAT(outcome, IsOk());
        ++reads_;
      }
    }
  }

  FakeMap map_;
  std::vector<std::unique_ptr<FakeTarget>> targets_;
  std::vector<std::unique_ptr<PeerService>> services_;
  std::unique_ptr<NetworkRig> rig_ = MakeTcpRig(false, false);
  std::unique_ptr<ClientNode> client_;
  uint64_t reads_ = 0;
};

TEST_F(ClusterOnTcp, GetsStayExactWhileTwoServersDieInTheirMiddle) {
  constexpr uint64_t kBlocks = 12;
  for (uint64_t i = 0; i < kBlocks; ++i) ASSERT_THAT(rig_->Await(client_->Put(i)), IsOk());
  std::vector<Task<void>> readers;
  for (uint64_t i = 0; i < 4; ++i) readers.push_back(ReadAll(i * 3, kBlocks));
  rig_->RunUntil([this] { return reads_ > 40; });
  rig_->Kill(ServerId(2));
  rig_->RunUntil([this] { return reads_ > 80; });
  rig_->Kill(ServerId(9));
  for (Task<void>& reader : readers) rig_->Await(std::move(reader));
  EXPECT_EQ(reads_, 4u * 8 * kBlocks);
  EXPECT_GT(client_->stats().degraded_reads, 0u);
}

}  // namespace
}  // namespace cairn::kv
