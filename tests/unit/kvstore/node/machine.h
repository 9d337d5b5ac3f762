// A node on simulated targets that can be stopped, crashed and filled.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "kvstore/node/node.h"
#include "tests/sim/store_checker.h"
#include "tests/sim/store_world.h"
#include "tests/support/status_matchers.h"

namespace cairn::kv {

struct Chain {
  std::vector<BlockId> ids;
  std::vector<uint32_t> sizes;
};

class Machine {
 public:
  explicit Machine(const sim::StoreWorldOptions& options = {}, NamespaceOptions space_options = {})
      : world(options), space_options_(std::move(space_options)) {
    space_options_.name = "tests";
    space_options_.fingerprint = "f";
    space_options_.run_blocks = 8;
    Start();
  }
  ~Machine() { EXPECT_THAT(world.Stop(), testing::IsOk()); }

  void Start() {
    ASSERT_THAT(world.Start(), testing::IsOk());
    auto attached = world.clock().Await(store().Attach(space_options_));
    ASSERT_THAT(attached, testing::IsOk());
    space = attached.value();
  }
  void Crash(sim::CrashMode mode) {
    world.Crash(mode);
    world.Bury();
  }
  BlockStore& store() { return world.node().store(); }

  Chain MakeChain(size_t blocks, uint32_t size) {
    Chain chain;
    for (size_t i = 0; i < blocks; ++i) {
      BlockId id;
      id.high = random_.Next();
      id.low = random_.Next();
      chain.ids.push_back(id);
      chain.sizes.push_back(size);
    }
    return chain;
  }
  std::vector<Status> Put(const Chain& chain, Ack ack = Ack::kCached) {
    ChainPut put{.space = space, .chain = chain.ids, .ack = ack};
    std::vector<Bytes> bytes;
    for (size_t i = 0; i < chain.ids.size(); ++i) {
      bytes.push_back(sim::StoreChecker::BytesOf(chain.ids[i], chain.sizes[i]));
      put.blocks.push_back({chain.ids[i], bytes.back().span()});
    }
    return world.clock().Await(store().Put(put));
  }
  ChainHit Lookup(const Chain& chain) {
    return world.clock().Await(store().Lookup(space, chain.ids)).value();
  }
  // The number of blocks that come back exact; wrong bytes fail the test.
  size_t Readable(const Chain& chain) {
    size_t count = 0;
    for (size_t i = 0; i < chain.ids.size(); ++i) {
      Bytes room(chain.sizes[i]);
      const std::vector<BlockRead> reads{{chain.ids[i], room.sectors()}};
      const auto results = world.clock().Await(store().Get(space, chain.ids, reads, kNever));
      if (!results[0].status.ok()) continue;
      const Bytes wanted = sim::StoreChecker::BytesOf(chain.ids[i], chain.sizes[i]);
      EXPECT_EQ(AsText(room.span()), AsText(wanted.span())) << "wrong bytes";
      ++count;
    }
    return count;
  }
  void Pass(Nanos time) { world.clock().RunUntil(world.clock().Now() + time); }

  sim::StoreWorld world;
  NamespaceId space;

 private:
  NamespaceOptions space_options_;
  Random random_{5};
};

}  // namespace cairn::kv
