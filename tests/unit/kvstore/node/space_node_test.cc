// Quotas, promises and deletions on a node: under pressure, through restarts and losses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/kvstore/node/machine.h"

namespace cairn::kv {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using testing::HasCode;
using testing::IsOk;

sim::StoreWorldOptions SmallWorld() {
  sim::StoreWorldOptions small;
  small.targets = 4;
  small.segments = 8;  // 128 MiB in all.
  return small;
}

constexpr uint32_t kBlock = 500'000;
constexpr uint64_t kStripe = 8 * 503'808;  // Payload of eight blocks, in whole sectors.

class SpaceNodeTest : public ::testing::Test {
 protected:
  SpaceNodeTest() : machine(SmallWorld(), Options("tests", 0)) {}

  static NamespaceOptions Options(const char* name, uint64_t quota) {
    return {.name = name,
            .fingerprint = "f",
            .data_shards = 2,
            .parity_shards = 1,
            .run_blocks = 8,
            .quota_bytes = quota};
  }
  NamespaceId Create(const char* name, uint64_t quota) {
    return machine.world.clock()
        .Await(machine.world.node().striped().CreateSpace(Options(name, quota)))
        .value();
  }
  // Puts chains of eight blocks, two seconds apart, and returns the last.
  std::vector<Chain> Fill(NamespaceId space, int count) {
    machine.space = space;
    std::vector<Chain> chains;
    for (int i = 0; i < count; ++i) {
      chains.push_back(machine.MakeChain(8, kBlock));
      EXPECT_THAT(machine.Put(chains.back()), Each(IsOk())) << i;
      machine.Pass(Seconds(2));
    }
    return chains;
  }
  size_t Readable(NamespaceId space, const Chain& chain) {
    machine.space = space;
    return machine.Readable(chain);
  }
  uint64_t StoredBytes(NamespaceId space) {
    for (const SpaceInfo& info : machine.world.node().striped().Spaces()) {
      if (info.id == space) return info.stored_bytes;
    }
    return 0;
  }
  void Restart() {
    EXPECT_THAT(machine.world.Stop(), IsOk());
    ASSERT_THAT(machine.world.Start(), IsOk());
  }
  StripedStore& striped() { return machine.world.node().striped(); }

  Machine machine;
};

TEST_F(SpaceNodeTest, TwoNamespacesWithQuotasDoNotTakeFromEachOther) {
  const uint64_t quota = 5 * kStripe;  // 20 MiB: 30 with parity. Two of them fit easily.
  const NamespaceId one = Create("one", quota);
  const NamespaceId two = Create("two", quota);
  const std::vector<Chain> kept = Fill(one, 4);
  const std::vector<Chain> flood = Fill(two, 40);
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(Readable(one, kept[i]), 8u) << i;
  EXPECT_EQ(Readable(two, flood.back()), 8u);
  EXPECT_EQ(Readable(two, flood.front()), 0u);
  EXPECT_LE(StoredBytes(two), quota);
  EXPECT_GE(StoredBytes(two), 4 * kStripe);
}

TEST_F(SpaceNodeTest, PromisesHoldUnderPressureAndThroughACrash) {
  const NamespaceId space = Create("kept", 20 * kStripe);
  machine.space = space;
  const Chain kept = machine.MakeChain(8, kBlock);
  EXPECT_THAT(machine.Put(kept), Each(IsOk()));
  const UnixMillis until{machine.world.clock().UnixNow().value + 3600 * 1000};
  EXPECT_THAT(machine.world.clock().Await(machine.store().Touch(space, kept.ids, 0, until)),
              Each(IsOk()));
  machine.Crash(sim::CrashMode::kProcess);
  ASSERT_THAT(machine.world.Start(), IsOk());
  (void)Fill(striped().home().spaces().FindName("tests")->id, 60);  // 240 MB into 128 MiB.
  EXPECT_GT(machine.world.node().stats().evicted_stripes, 0u);
  EXPECT_EQ(Readable(space, kept), 8u);
}

TEST_F(SpaceNodeTest, PromisesTogetherLeaveRoomForOthers) {
  const NamespaceId space = Create("greedy", 1 * kGiB);
  machine.space = space;
  const UnixMillis until{machine.world.clock().UnixNow().value + 3600 * 1000};
  int kept = 0;
  for (int i = 0; i < 30; ++i) {
    const Chain chain = machine.MakeChain(8, kBlock);
    EXPECT_THAT(machine.Put(chain), Each(IsOk()));
    const auto touched =
        machine.world.clock().Await(machine.store().Touch(space, chain.ids, 0, until));
    kept += touched[0].ok() ? 1 : 0;
    EXPECT_THAT(touched, AnyOf(Each(IsOk()), Each(HasCode(Code::kOverloaded))));
    machine.Pass(Seconds(2));
  }
  EXPECT_EQ(kept, 11);  // 5.8 MiB each of 64: half the capacity.
  (void)Fill(striped().home().spaces().FindName("tests")->id, 40);
}

TEST_F(SpaceNodeTest, ADeletedNamespaceGivesItsBytesBackAlsoAfterARestart) {
  const NamespaceId space = Create("doomed", 0);
  (void)Fill(space, 10);
  const uint64_t live = machine.world.node().stats().live_bytes;
  EXPECT_GT(live, 50u * kMiB);
  EXPECT_THAT(machine.world.clock().Await(striped().DeleteSpace("doomed")), IsOk());
  machine.Crash(sim::CrashMode::kPowerCut);  // Before a single stripe is removed.
  ASSERT_THAT(machine.world.Start(), IsOk());
  EXPECT_TRUE(striped().home().spaces().IsDeleted(space));
  machine.Pass(Seconds(30));
  EXPECT_EQ(machine.world.node().stats().live_bytes, 0u);
  EXPECT_FALSE(striped().home().sweeper().sweeping());
  const NamespaceId again = Create("doomed", 0);
  EXPECT_NE(again, space);
}

TEST_F(SpaceNodeTest, UsageIsCountedAnewWhenTheStoreOpens) {
  const NamespaceId space = Create("counted", 0);
  const std::vector<Chain> chains = Fill(space, 3);
  EXPECT_EQ(StoredBytes(space), 3 * kStripe);
  Restart();
  EXPECT_EQ(StoredBytes(space), 3 * kStripe);
  EXPECT_EQ(striped().Spaces().size(), 2u);
  EXPECT_THAT(machine.world.clock().Await(machine.store().Delete(space, chains[0].ids, 0)), IsOk());
  EXPECT_EQ(StoredBytes(space), 2 * kStripe);
}

TEST_F(SpaceNodeTest, ADeletedBlockStaysDeletedThroughAPowerCut) {
  const NamespaceId space = Create("cut", 0);
  const std::vector<Chain> chains = Fill(space, 4);  // 8 s: all of it is durable.
  EXPECT_THAT(machine.world.clock().Await(machine.store().Delete(space, chains[1].ids, 0)), IsOk());
  machine.Crash(sim::CrashMode::kPowerCut);
  ASSERT_THAT(machine.world.Start(), IsOk());
  EXPECT_EQ(Readable(space, chains[0]), 8u);
  EXPECT_EQ(Readable(space, chains[1]), 0u);
}

// Both quotas together are 83 % of what the targets hold. A quota reserves nothing: what the
// rewrite budget does not save of the idle namespace goes. It keeps 63 %.
TEST(SpaceNode, AnIdleNamespaceKeepsMostOfItsQuotaInANearlyFullStore) {
  sim::StoreWorldOptions tight;
  tight.targets = 4;
  tight.segments = 32;
  Machine machine(tight, {.data_shards = 2, .parity_shards = 1});
  const uint64_t quota = 37 * kStripe;  // Of 88 that fit.
  const auto create = [&](const char* name) {
    const NamespaceOptions options{.name = name,
                                   .fingerprint = "f",
                                   .data_shards = 2,
                                   .parity_shards = 1,
                                   .run_blocks = 8,
                                   .quota_bytes = quota};
    StripedStore& store = machine.world.node().striped();
    return machine.world.clock().Await(store.CreateSpace(options)).value();
  };
  const NamespaceId idle = create("idle");
  const NamespaceId busy = create("busy");
  std::vector<Chain> kept;
  const auto put = [&](NamespaceId space) {
    machine.space = space;
    Chain chain = machine.MakeChain(8, kBlock);
    EXPECT_THAT(machine.Put(chain), Each(IsOk()));
    machine.Pass(Seconds(1));
    return chain;
  };
  for (int i = 0; i < 36; ++i) {
    kept.push_back(put(idle));
    (void)put(busy);
  }
  for (int i = 0; i < 120; ++i) (void)put(busy);
  size_t left = 0;
  for (const Chain& chain : kept) {
    machine.space = idle;
    left += machine.Lookup(chain).blocks;
  }
  EXPECT_GE(left, 36u * 8 / 2);
  EXPECT_GE(machine.world.node().striped().Spaces()[0].stored_bytes, quota * 9 / 10);
}

}  // namespace
}  // namespace cairn::kv
