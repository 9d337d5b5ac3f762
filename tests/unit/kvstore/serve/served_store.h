// A store over targets in memory, its server, and clients of it, all on one loop.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kvstore/client/striped_store.h"
#include "kvstore/os/system_clock.h"
#include "kvstore/remote/remote_store.h"
#include "kvstore/serve/server.h"
#include "tests/support/poller_from_environment.h"
#include "tests/support/recorded_memory.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tls_authority.h"
#include "tests/unit/kvstore/client/fake_target.h"
#include "tests/unit/kvstore/client/local_home.h"
#include "tests/unit/kvstore/serve/no_room.h"

namespace cairn::kv {

// A chain of blocks with random bytes.
struct Blocks {
  std::vector<BlockId> ids;
  std::vector<Bytes> bytes;
};

class ServedStore {
 public:
  ServedStore() {
    poller_ = std::move(Poller::Create(loop_, log_, PollerFromEnvironment())).value();
    clock_ = std::make_unique<SystemClock>(*poller_);
    std::vector<TargetPort*> ports;
    for (size_t i = 0; i < 12; ++i) {
      targets_.push_back(std::make_unique<FakeTarget>(i + 1));
      ports.push_back(targets_.back().get());
    }
    set_ = std::make_unique<TargetSet>(*clock_, ports);
    home_ = std::make_unique<LocalHome>(LocalHome::Parts{.loop = loop_,
                                                         .clock = *clock_,
                                                         .random = random_,
                                                         .log = log_,
                                                         .targets = *set_});
    StripedStoreOptions options;
    options.shard_size_max = 16 * kMiB;
    options.cache.bytes_max = 0;
    store_ = std::make_unique<StripedStore>(StripedStoreParts{.loop = loop_,
                                                              .clock = *clock_,
                                                              .workers = workers_,
                                                              .random = random_,
                                                              .log = log_,
                                                              .targets = *set_,
                                                              .placement = home_->placement,
                                                              .home = home_->home,
                                                              .index = home_->home.index(),
                                                              .space_store = home_->space_store,
                                                              .keeper = keeper_},
                                            options);
    EXPECT_THAT(Await(store_->LoadSpaces()), testing::IsOk());
    options_.unix_path = folder_.File("cairn.sock");
    options_.tcp_address = "127.0.0.1:0";
  }
  ~ServedStore() {
    for (std::unique_ptr<RemoteStore>& client : clients_) {
      if (client != nullptr) Await(client->Stop());
    }
    clients_.clear();
    StopServer();
  }

  // --- The server ---
  ServerOptions& options() { return options_; }
  // Before StartServer: TCP is encrypted, and both sides show certificates.
  void UseTls() {
    testing::TlsAuthority authority(folder_.path(), "ca");
    options_.tls = TlsContext::Load(authority.NewFiles()).value();
    tls_ = authority.NewFiles();
  }
  const std::string& ca_file() const { return tls_.ca_file; }
  void StartServer() {
    const ServerParts parts{.poller = *poller_,
                            .clock = *clock_,
                            .log = log_,
                            .store = *store_,
                            .sessions = *store_,
                            .cluster = cluster,
                            .network = &network};
    Result<std::unique_ptr<Server>> started = Server::Start(parts, options_);
    ASSERT_THAT(started, testing::IsOk());
    server_ = std::move(started).value();
    // The same port again after a restart.
    if (!options_.tcp_address.empty()) options_.tcp_address = TcpAddress();
  }
  void StopServer() {
    if (server_ != nullptr) Await(server_->Stop());
    server_.reset();
  }
  std::string UnixAddress() const { return "unix:" + options_.unix_path; }
  std::string TcpAddress() const { return "127.0.0.1:" + std::to_string(server_->tcp_port()); }
  const ServerStats& stats() const { return server_->stats(); }

  // --- Clients, which live until the end or Disconnect ---
  RemoteStore& Connect(RemoteOptions options) {
    const RemoteParts parts{.poller = *poller_, .clock = *clock_, .log = log_};
    auto connected = Await(RemoteStore::Connect(parts, std::move(options)));
    KV_CHECK(connected.ok());
    clients_.push_back(std::move(connected).value());
    return *clients_.back();
  }
  RemoteStore& ConnectUnix() { return Connect({.address = UnixAddress()}); }
  RemoteStore& ConnectTcp() {
    return Connect({.address = (options_.tls ? "tls:" : "") + TcpAddress(), .tls = tls_});
  }
  void Disconnect(RemoteStore& client) {
    for (std::unique_ptr<RemoteStore>& one : clients_) {
      if (one.get() != &client) continue;
      Await(one->Stop());
      one.reset();
    }
  }

  Blocks MakeBlocks(const std::vector<uint32_t>& sizes) {
    Blocks blocks;
    for (const uint32_t size : sizes) {
      blocks.ids.push_back(BlockId{{random_.Next(), random_.Next()}});
      blocks.bytes.emplace_back(size);
      random_.Fill(blocks.bytes.back().span());
    }
    return blocks;
  }
  static ChainPut PutOf(NamespaceId space, const Blocks& blocks) {
    ChainPut put{.space = space, .chain = blocks.ids};
    for (size_t i = 0; i < blocks.ids.size(); ++i) {
      BlockWrite& write = put.blocks.emplace_back();
      write.id = blocks.ids[i];
      write.bytes = blocks.bytes[i].span();
    }
    return put;
  }

  template <typename T>
  T Await(Task<T> task) {
    return poller_->Await(std::move(task));
  }
  // Runs the loop until it holds.
  void Until(const std::function<bool()>& holds) {
    bool ticking = true;
    Event stop(loop_);
    Task<void> tick = Tick(ticking, stop);
    poller_->RunUntil(holds);
    ticking = false;
    stop.Set();
    Await(std::move(tick));
  }
  FakeTarget& target(size_t i) { return *targets_[i]; }
  // Reads of every target wait for the event; null: they do not.
  void HoldReads(Event* event) {
    for (const auto& target : targets_) target->hold_reads = event;
  }
  Poller& poller() { return *poller_; }
  Loop& loop() { return loop_; }
  Clock& clock() { return *clock_; }
  StripedStore& store() { return *store_; }
  Random& random() { return random_; }
  Log& log() { return log_; }
  const testing::TemporaryFolder& folder() const { return folder_; }

  ClusterAdmin* cluster = nullptr;
  testing::RecordedMemory network;  // Told of the memory that clients share.

 private:
  // So that the poller wakes up to look at the condition.
  Task<void> Tick(const bool& ticking, Event& stop) {
    while (ticking) co_await clock_->SleepUntil(clock_->Now() + Millis(2), &stop);
  }

  testing::TemporaryFolder folder_;
  TlsFiles tls_;  // Of clients.
  NullLog log_;
  Loop loop_;
  std::unique_ptr<Poller> poller_;
  std::unique_ptr<SystemClock> clock_;
  InlineWorkers workers_;
  Random random_{99};
  NoRoom keeper_;
  std::vector<std::unique_ptr<FakeTarget>> targets_;
  std::unique_ptr<TargetSet> set_;
  std::unique_ptr<LocalHome> home_;
  std::unique_ptr<StripedStore> store_;
  ServerOptions options_;
  std::unique_ptr<Server> server_;
  std::vector<std::unique_ptr<RemoteStore>> clients_;
};

}  // namespace cairn::kv
