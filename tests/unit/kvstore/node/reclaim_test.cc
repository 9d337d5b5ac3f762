// Reclaim on a node: what goes first, what it costs, and that a full store takes puts.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/kvstore/node/machine.h"

namespace cairn::kv {
namespace {

using ::testing::Each;
using testing::IsOk;

// 4 targets of 16 segments of 4 MiB; a chain of 8 blocks takes 6 MB of their 256 MiB.
sim::StoreWorldOptions SmallWorld() {
  sim::StoreWorldOptions small;
  small.targets = 4;
  small.segments = 16;
  return small;
}

NamespaceOptions Space(uint32_t ttl_seconds = 24 * 3600) {
  return {.data_shards = 2, .parity_shards = 1, .ttl_seconds = ttl_seconds};
}

uint64_t FreeSegmentsMin(Machine& machine) {
  uint64_t fewest = UINT64_MAX;
  for (const auto& target : machine.world.node().targets()) {
    const std::vector<SegmentInfo> segments = target->log().segments();
    const auto free = std::count_if(segments.begin(), segments.end(), [](const SegmentInfo& one) {
      return one.state == SegmentInfo::State::kFree;
    });
    fewest = std::min(fewest, static_cast<uint64_t>(free));
  }
  return fewest;
}

TEST(Reclaim, AFullTtlCycleRewritesAndEvictsNothing) {
  Machine machine(SmallWorld(), Space(40));
  for (int i = 0; i < 150; ++i) {  // 900 MB, of which 120 MB live at a time.
    ASSERT_THAT(machine.Put(machine.MakeChain(8, 500'000)), Each(IsOk())) << i;
    machine.Pass(Seconds(2));
  }
  const StoreStats stats = machine.world.node().stats();
  EXPECT_GT(stats.bytes_appended, 3 * stats.capacity_bytes);
  EXPECT_EQ(stats.bytes_moved, 0u);  // Write amplification: exactly 1.
  EXPECT_EQ(stats.evicted_stripes, 0u);
  EXPECT_GT(stats.expired_stripes, 0u);
}

TEST(Reclaim, AFullStoreTakesPutsAndEvictsAheadOfNeed) {
  Machine machine(SmallWorld(), Space());
  for (int i = 0; i < 120; ++i) {
    ASSERT_THAT(machine.Put(machine.MakeChain(8, 500'000)), Each(IsOk())) << i;
    machine.Pass(Seconds(1));
    EXPECT_GE(FreeSegmentsMin(machine), 2u) << i;
  }
  // And without a pause in which to keep house.
  for (int i = 0; i < 120; ++i) {
    ASSERT_THAT(machine.Put(machine.MakeChain(8, 500'000)), Each(IsOk())) << i;
  }
  const StoreStats stats = machine.world.node().stats();
  EXPECT_GT(stats.evicted_stripes, 0u);
  EXPECT_EQ(stats.puts_failed, 0u);
}

TEST(Reclaim, SuffixesGoBeforePrefixes) {
  Machine machine(SmallWorld(), Space());
  const Chain chain = machine.MakeChain(128, 500'000);  // A third of the store.
  ASSERT_THAT(machine.Put(chain), Each(IsOk()));
  machine.Pass(Seconds(5));
  int partial = 0;
  for (int i = 0; i < 60; ++i) {
    ASSERT_THAT(machine.Put(machine.MakeChain(8, 500'000)), Each(IsOk()));
    machine.Pass(Seconds(1));
    // Each block looked up alone tells what is left, without the rest.
    size_t left = 0;
    size_t prefix = 0;
    for (size_t at = 0; at < chain.ids.size(); at += 8) {
      Chain run{.ids = {}, .sizes = {}};
      run.ids.assign(chain.ids.begin() + static_cast<ptrdiff_t>(at),
                     chain.ids.begin() + static_cast<ptrdiff_t>(at) + 8);
      // The age of what is looked up must not change: ask the index, not the store.
      const auto found = machine.world.clock().Await(
          machine.world.node().striped().index().LoadAll({machine.space, RunId{run.ids[0]}}));
      ASSERT_THAT(found, IsOk());
      for (const BlockId& id : run.ids) {
        const bool there = !found.value()->Find(id).empty();
        if (there && prefix == left) ++prefix;
        left += there ? 1 : 0;
      }
    }
    if (left == 0 || left == chain.ids.size()) continue;
    ++partial;
    EXPECT_GE(prefix * 10, left * 7) << left << " blocks are left, in step " << i;
  }
  EXPECT_GT(partial, 3);
}

TEST(Reclaim, WhatIsUsedStaysWithinTheRewriteBudget) {
  sim::StoreWorldOptions world = SmallWorld();
  world.segments = 32;
  Machine machine(world, Space());
  std::vector<Chain> used;
  for (int i = 0; i < 8; ++i) used.push_back(machine.MakeChain(8, 500'000));
  for (const Chain& chain : used) ASSERT_THAT(machine.Put(chain), Each(IsOk()));
  for (int i = 0; i < 200; ++i) {
    ASSERT_THAT(machine.Put(machine.MakeChain(8, 500'000)), Each(IsOk())) << i;
    machine.Pass(Seconds(1));
    EXPECT_EQ(machine.Lookup(used[static_cast<size_t>(i) % used.size()]).blocks, 8u) << i;
  }
  const StoreStats stats = machine.world.node().stats();
  EXPECT_GT(stats.bytes_moved, 0u);
  EXPECT_LE(stats.bytes_moved * 100, (stats.bytes_appended - stats.bytes_moved) * 30 +
                                         100 * 4 * 4 * kMiB);  // A segment is granted to start.
}

TEST(Reclaim, AStripeWithADamagedShardIsMovedAndRestored) {
  Machine machine(SmallWorld(), Space());
  std::vector<Chain> used;  // A little in each segment, so that none is freed without a move.
  for (int i = 0; i < 16; ++i) {
    used.push_back(machine.MakeChain(8, 20'000));
    ASSERT_THAT(machine.Put(used.back()), Each(IsOk()));
    ASSERT_THAT(machine.Put(machine.MakeChain(8, 500'000)), Each(IsOk()));
  }
  sim::SimDisk& disk = machine.world.disk(0);
  for (uint64_t at = 64 * kKiB + 8 * kSectorSize; at < disk.size(); at += kSectorSize) {
    disk.FlipBit(at + 100, 3);
  }
  for (int i = 0; i < 40; ++i) {
    ASSERT_THAT(machine.Put(machine.MakeChain(8, 500'000)), Each(IsOk())) << i;
    machine.Pass(Seconds(1));
    for (const Chain& chain : used) ASSERT_EQ(machine.Lookup(chain).blocks, 8u) << i;
  }
  for (const Chain& chain : used) EXPECT_EQ(machine.Readable(chain), 8u);
  EXPECT_GT(machine.world.node().stats().shards_restored, 0u);
}

TEST(Reclaim, ManyExpiredStripesAreGoneSoon) {
  Machine machine(SmallWorld(), {.data_shards = 2,
                                 .parity_shards = 1,
                                 .retention = RetentionKind::kFixed,
                                 .ttl_seconds = 60});
  for (int i = 0; i < 3'000; ++i) {
    ASSERT_THAT(machine.Put(machine.MakeChain(1, 1'000)), Each(IsOk())) << i;
  }
  machine.Pass(Seconds(61));
  EXPECT_GT(machine.world.node().stats().expired_stripes, 2'900u);
}

}  // namespace
}  // namespace cairn::kv
