// A node through restarts, losses and a full store, on simulated targets.
#include "kvstore/node/node.h"

#include <gtest/gtest.h>

#include <cstring>

#include "kvstore/base/checksum.h"
#include "kvstore/segment/format.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/kvstore/node/machine.h"

namespace cairn::kv {
namespace {

using sim::CrashMode;
using sim::StoreChecker;
using sim::StoreWorld;
using sim::StoreWorldOptions;
using ::testing::Each;
using testing::HasCode;
using testing::IsOk;

TEST(Node, KeepsBlocksThroughARestart) {
  Machine machine;
  const Chain chain = machine.MakeChain(12, 100'000);
  EXPECT_THAT(machine.Put(chain), Each(IsOk()));
  EXPECT_THAT(machine.world.Stop(), IsOk());
  machine.Start();
  EXPECT_EQ(machine.Lookup(chain).blocks, 12u);
  EXPECT_EQ(machine.Readable(chain), 12u);
}

TEST(Node, KeepsAcknowledgedBlocksWhenTheProcessDies) {
  Machine machine;
  const Chain chain = machine.MakeChain(12, 100'000);
  EXPECT_THAT(machine.Put(chain), Each(IsOk()));
  machine.Crash(CrashMode::kProcess);
  machine.Start();
  EXPECT_EQ(machine.Readable(chain), 12u);
}

TEST(Node, KeepsDurableBlocksThroughAPowerCut) {
  Machine machine;
  const Chain chain = machine.MakeChain(12, 100'000);
  EXPECT_THAT(machine.Put(chain, Ack::kDurable), Each(IsOk()));
  machine.Crash(CrashMode::kPowerCut);
  machine.Start();
  EXPECT_EQ(machine.Readable(chain), 12u);
}

TEST(Node, KeepsCachedBlocksThroughAPowerCutAfterTheCheckpoint) {
  Machine machine;
  const Chain chain = machine.MakeChain(12, 100'000);
  EXPECT_THAT(machine.Put(chain), Each(IsOk()));
  machine.Pass(Seconds(7));
  machine.Crash(CrashMode::kPowerCut);
  machine.Start();
  EXPECT_EQ(machine.Readable(chain), 12u);
}

TEST(Node, FormatsNothingWhileATargetIsOfAnotherVersion) {
  Machine machine;
  ASSERT_THAT(machine.world.Stop(), IsOk());
  machine.world.Wipe(0);
  sim::SimDisk& other = machine.world.disk(11);
  Bytes ours(kSectorSize);
  other.ReadPristine(0, ours.sectors());
  Bytes theirs = Bytes::CopyOf(ours.span());
  theirs.data()[8] = 2;  // As version 2 would write it: the seal is where it always is.
  const uint64_t seal = Checksum(theirs.span().first(32));
  std::memcpy(theirs.data() + 32, &seal, sizeof(seal));
  const auto write = [&](const Bytes& superblock) {
    for (const uint64_t offset : kSuperblockOffsets) {
      const Status done = machine.world.clock().Await(other.Write(offset, superblock.sectors()));
      ASSERT_THAT(done, IsOk());
    }
  };
  write(theirs);
  const uint64_t written = machine.world.disk(0).writes();
  EXPECT_THAT(machine.world.Start(), HasCode(Code::kConflict));
  EXPECT_EQ(machine.world.disk(0).writes(), written);
  write(ours);
  machine.Start();
  EXPECT_GT(machine.world.disk(0).writes(), written);
}

TEST(Node, AnyTwoTargetsMayBeReplacedByEmptyOnes) {
  for (const auto& [a, b] : {std::pair(0u, 1u), std::pair(3u, 11u), std::pair(7u, 8u)}) {
    Machine machine;
    const Chain chain = machine.MakeChain(20, 60'000);
    EXPECT_THAT(machine.Put(chain), Each(IsOk()));
    EXPECT_THAT(machine.world.Stop(), IsOk());
    machine.world.Wipe(a);
    machine.world.Wipe(b);
    machine.Start();
    EXPECT_EQ(machine.Lookup(chain).blocks, 20u);
    EXPECT_EQ(machine.Readable(chain), 20u);
  }
}

TEST(Node, FilesTheIndexAnewWhereAReplicaWasReplaced) {
  Machine machine;
  const Chain chain = machine.MakeChain(40, 5'000);
  EXPECT_THAT(machine.Put(chain), Each(IsOk()));
  for (uint32_t i = 0; i < 12; ++i) {  // One after the other, all of them lose their index.
    EXPECT_THAT(machine.world.Stop(), IsOk());
    machine.world.WipeMetadata(i);
    machine.Start();
    machine.Pass(Seconds(10));
  }
  EXPECT_TRUE(machine.world.node().home().index().settled());
  EXPECT_EQ(machine.Readable(chain), 40u);
}

TEST(Node, RebuildsEveryIndexFromTheSegments) {
  Machine machine;
  const Chain chain = machine.MakeChain(20, 60'000);
  EXPECT_THAT(machine.Put(chain), Each(IsOk()));
  EXPECT_THAT(machine.world.Stop(), IsOk());
  for (uint32_t i = 0; i < 12; ++i) machine.world.WipeMetadata(i);
  machine.Start();
  EXPECT_EQ(machine.Lookup(chain).blocks, 20u);
  EXPECT_EQ(machine.Readable(chain), 20u);
  EXPECT_GT(machine.world.node().stats().republished_stripes, 0u);
}

TEST(Node, ATargetThatWasAwayDoesNotBringDeletedBlocksBack) {
  StoreWorldOptions small;
  small.targets = 4;
  for (uint32_t away = 0; away < small.targets; ++away) {
    Machine machine(small, {.data_shards = 2, .parity_shards = 2});
    const Chain chain = machine.MakeChain(4, 1'000);  // A copy on each of three targets.
    EXPECT_THAT(machine.Put(chain), Each(IsOk()));
    machine.Crash(CrashMode::kProcess);  // So that targets find it in their segments, too.
    machine.world.SetDown(away, true);
    machine.Start();
    ASSERT_EQ(machine.world.node().targets().size(), 3u);
    EXPECT_EQ(machine.Lookup(chain).blocks, 4u);
    EXPECT_THAT(machine.world.clock().Await(machine.store().Delete(machine.space, chain.ids, 0)),
                IsOk());
    EXPECT_THAT(machine.world.Stop(), IsOk());
    machine.world.SetDown(away, false);
    machine.Start();
    EXPECT_EQ(machine.Lookup(chain).blocks, 0u) << away;
    machine.Pass(Seconds(20));  // The index is made whole meanwhile.
    EXPECT_EQ(machine.Readable(chain), 0u) << away;
    EXPECT_THAT(machine.Put(chain), Each(IsOk()));
    EXPECT_THAT(machine.world.Stop(), IsOk());
    machine.Start();
    EXPECT_EQ(machine.Readable(chain), 4u) << away;
  }
}

TEST(Node, ExpiryGoesOnThroughARestart) {
  Machine machine({}, {.retention = RetentionKind::kFixed, .ttl_seconds = 100});
  const Chain chain = machine.MakeChain(3, 50'000);
  EXPECT_THAT(machine.Put(chain), Each(IsOk()));
  EXPECT_THAT(machine.world.Stop(), IsOk());
  machine.Pass(Seconds(50));
  machine.Start();
  EXPECT_EQ(machine.Lookup(chain).blocks, 3u);
  machine.Pass(Seconds(51));
  EXPECT_EQ(machine.Lookup(chain).blocks, 0u);
  EXPECT_EQ(machine.Readable(chain), 0u);
}

TEST(Node, ARefreshSurvivesARestart) {
  Machine machine({}, {.retention = RetentionKind::kRefreshed, .ttl_seconds = 100});
  const Chain chain = machine.MakeChain(3, 50'000);
  EXPECT_THAT(machine.Put(chain), Each(IsOk()));
  machine.Pass(Seconds(80));
  EXPECT_EQ(machine.Lookup(chain).blocks, 3u);
  EXPECT_THAT(machine.world.Stop(), IsOk());
  machine.Pass(Seconds(80));
  machine.Start();
  EXPECT_EQ(machine.Readable(chain), 3u);
}

TEST(Node, ExpiredStripesGiveTheirSpaceBack) {
  Machine machine({}, {.retention = RetentionKind::kFixed, .ttl_seconds = 10});
  const Chain chain = machine.MakeChain(16, 100'000);
  EXPECT_THAT(machine.Put(chain), Each(IsOk()));
  EXPECT_GT(machine.world.node().stats().live_bytes, 0u);
  machine.Pass(Seconds(30));
  EXPECT_EQ(machine.world.node().stats().live_bytes, 0u);
  EXPECT_GT(machine.world.node().stats().expired_stripes, 0u);
}

TEST(Node, AFullStoreEvictsTheLeastRecentlyUsedAndTakesEveryPut) {
  StoreWorldOptions small;
  small.targets = 4;
  small.segments = 16;
  Machine machine(small, {.data_shards = 2, .parity_shards = 1});
  const Chain hot = machine.MakeChain(8, 500'000);
  EXPECT_THAT(machine.Put(hot), Each(IsOk()));
  std::vector<Chain> cold;
  for (int i = 0; i < 80; ++i) {  // 480 MB with parity, into 256 MiB of targets.
    cold.push_back(machine.MakeChain(8, 500'000));
    ASSERT_THAT(machine.Put(cold.back()), Each(IsOk())) << i;
    machine.Pass(Seconds(2));
    EXPECT_EQ(machine.Lookup(hot).blocks, 8u) << i;  // Used all the time.
  }
  EXPECT_EQ(machine.Readable(hot), 8u);
  EXPECT_EQ(machine.Readable(cold.back()), 8u);
  EXPECT_EQ(machine.Readable(cold.front()), 0u);
  EXPECT_EQ(machine.Lookup(cold.front()).miss, MissReason::kEvicted);
  EXPECT_GT(machine.world.node().stats().evicted_stripes, 0u);
}

TEST(Node, RefusesABlockThatNoSegmentCanHold) {
  StoreWorldOptions small;
  small.targets = 4;
  small.segments = 8;
  Machine machine(small, {.data_shards = 2, .parity_shards = 1});
  const Chain huge = machine.MakeChain(1, 20'000'000);
  EXPECT_THAT(machine.Put(huge), Each(HasCode(Code::kNoSpace)));
}

TEST(Node, ATargetBeyondUseIsReplacedByAnEmptyOne) {
  Machine machine;
  const Chain chain = machine.MakeChain(10, 60'000);
  EXPECT_THAT(machine.Put(chain), Each(IsOk()));
  EXPECT_THAT(machine.world.Stop(), IsOk());
  machine.world.disk(5).Corrupt(0, 64 * kKiB);
  machine.Start();
  EXPECT_EQ(machine.Readable(chain), 10u);
}

}  // namespace
}  // namespace cairn::kv
