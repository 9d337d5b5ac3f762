// A store over targets in memory, with verbs for tests.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "kvstore/client/striped_store.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/kvstore/client/fake_target.h"
#include "tests/unit/kvstore/client/local_home.h"

namespace cairn::kv {

// Evicts by hand: removes what the test says, or nothing.
class FakeKeeper final : public SpaceKeeper {
 public:
  Task<Status> MakeRoom(uint64_t) override {
    ++calls;
    if (!make_room) co_return Status(Code::kNoSpace, "nothing can be evicted");
    make_room();
    co_return Status();
  }
  std::function<void()> make_room;
  int calls = 0;
};

// A chain of blocks with random bytes; block i of chain c always has the same id and bytes.
struct Chain {
  std::vector<BlockId> ids;
  std::vector<Bytes> bytes;
};

class Store {
 public:
  // Without a cache unless it says so: then each read reaches the targets.
  explicit Store(size_t targets = 12, uint64_t cache_bytes = 0) {
    options_.shard_size_max = 8 * kMiB;
    options_.put_bytes_in_flight_max = 8 * kMiB;
    options_.cache.bytes_max = cache_bytes;
    std::vector<TargetPort*> ports;
    for (size_t i = 0; i < targets; ++i) {
      targets_.push_back(std::make_unique<FakeTarget>(i + 1));
      targets_.back()->now_seconds = [this] {
        return static_cast<uint32_t>(clock_.UnixNow().value / 1000);
      };
      ports.push_back(targets_.back().get());
    }
    set_ = std::make_unique<TargetSet>(clock_, ports);
    Reopen();
    space = Attach({.name = "tests", .fingerprint = "f1", .run_blocks = 8}).value();
  }

  void Reopen() {
    store_.reset();
    home_ = std::make_unique<LocalHome>(LocalHome::Parts{.loop = loop_,
                                                         .clock = clock_,
                                                         .random = random_,
                                                         .log = log_,
                                                         .targets = *set_},
                                        home_options_);
    StripedStoreParts parts{.loop = loop_,
                            .clock = clock_,
                            .workers = workers_,
                            .random = random_,
                            .log = log_,
                            .targets = *set_,
                            .placement = home_->placement,
                            .home = home_->home,
                            .index = home_->home.index(),
                            .space_store = home_->space_store,
                            .keeper = keeper_};
    store_ = std::make_unique<StripedStore>(parts, options_);
    EXPECT_THAT(Await(store_->LoadSpaces()), testing::IsOk());
  }

  template <typename T>
  T Await(Task<T> task) {
    loop_.RunReady();
    return task.Take();
  }

  Chain MakeChain(std::vector<uint32_t> sizes) {
    Chain chain;
    for (const uint32_t size : sizes) {
      chain.ids.push_back(BlockId{{random_.Next(), random_.Next()}});
      chain.bytes.emplace_back(size);
      random_.Fill(chain.bytes.back().span());
    }
    return chain;
  }
  Result<NamespaceId> Attach(NamespaceOptions options) { return Await(store_->Attach(options)); }
  ChainPut PutOf(const Chain& chain, size_t first, size_t count) {
    ChainPut put{.space = space, .chain = chain.ids, .first = static_cast<uint32_t>(first)};
    for (size_t i = first; i < first + count; ++i) {
      put.blocks.push_back({chain.ids[i], chain.bytes[i].span()});
    }
    return put;
  }
  std::vector<Status> Put(const Chain& chain) {
    return Await(store_->Put(PutOf(chain, 0, chain.ids.size())));
  }
  ChainHit Lookup(const Chain& chain) { return Await(store_->Lookup(space, chain.ids)).value(); }
  // The outcome, kCorrupt when the bytes are not those that were put.
  Status Get(const Chain& chain, size_t block, Instant deadline = kNever, size_t misalign = 0) {
    Bytes room(AlignUp(chain.bytes[block].size() + misalign, kSectorSize));
    const std::vector<BlockRead> reads{{chain.ids[block], room.span().subspan(misalign)}};
    const auto results = Await(store_->Get(space, chain.ids, reads, deadline));
    if (!results[0].status.ok()) return results[0].status;
    if (results[0].size != chain.bytes[block].size()) return Status(Code::kCorrupt, "wrong size");
    const ByteSpan wanted = chain.bytes[block].span();
    const bool same = std::equal(wanted.begin(), wanted.end(), room.data() + misalign);
    return same ? Status() : Status(Code::kCorrupt, "wrong bytes");
  }
  void ExpectAllReadable(const Chain& chain) {
    for (size_t i = 0; i < chain.ids.size(); ++i) EXPECT_THAT(Get(chain, i), testing::IsOk()) << i;
  }
  FakeTarget& target(size_t i) { return *targets_[i]; }
  size_t target_count() const { return targets_.size(); }
  StoreStats& stats() { return store_->stats(); }
  StripedStore& store() { return *store_; }
  StripedStoreOptions& options() { return options_; }  // For Reopen.
  HomeOptions& home_options() { return home_options_; }
  FakeClock& clock() { return clock_; }
  FakeKeeper& keeper() { return keeper_; }
  FakePlacement& placement() { return home_->placement; }
  const LackingStripes& lacking() { return home_->home.index().lacking(); }
  Loop& loop() { return loop_; }

  NamespaceId space;

 private:
  StripedStoreOptions options_;
  Loop loop_;
  FakeClock clock_;
  InlineWorkers workers_;
  Random random_{99};
  NullLog log_;
  FakeKeeper keeper_;
  std::vector<std::unique_ptr<FakeTarget>> targets_;
  std::unique_ptr<TargetSet> set_;
  HomeOptions home_options_;
  std::unique_ptr<LocalHome> home_;
  std::unique_ptr<StripedStore> store_;
};

}  // namespace cairn::kv
