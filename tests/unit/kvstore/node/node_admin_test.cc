// What operators see of a node.
#include "kvstore/node/node_admin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/kvstore/node/machine.h"

namespace cairn::kv {
namespace {

using ::testing::Each;
using testing::HasCode;
using ::testing::HasSubstr;
using testing::IsOk;

class NodeAdminTest : public ::testing::Test {
 protected:
  template <typename T>
  T Await(Task<T> task) {
    return machine.world.clock().Await(std::move(task));
  }
  // All pages of a listing.
  std::vector<BlockInfo> List(uint32_t limit, int* pages = nullptr) {
    std::vector<BlockInfo> blocks;
    std::string cursor;
    do {
      auto page = Await(admin.ListBlocks(machine.space, cursor, limit));
      EXPECT_THAT(page, IsOk());
      if (!page.ok()) break;
      EXPECT_LE(page.value().blocks.size(), limit);
      for (const BlockInfo& block : page.value().blocks) blocks.push_back(block);
      cursor = page.value().next;
      if (pages != nullptr) ++*pages;
    } while (!cursor.empty());
    return blocks;
  }

  Machine machine;
  NodeAdmin admin{machine.world.node()};
};

TEST_F(NodeAdminTest, ListsEachBlockOnceWhateverThePageSize) {
  std::set<BlockId> put;
  for (int i = 0; i < 9; ++i) {
    const Chain chain = machine.MakeChain(20, 9000);  // Three runs: 8, 8 and 4 blocks.
    EXPECT_THAT(machine.Put(chain), Each(IsOk()));
    put.insert(chain.ids.begin(), chain.ids.end());
  }
  for (const uint32_t limit : {1u, 3u, 7u, 8u, 64u, 10'000u}) {
    const std::vector<BlockInfo> blocks = List(limit);
    std::set<BlockId> listed;
    for (const BlockInfo& block : blocks) {
      listed.insert(block.id);
      EXPECT_EQ(block.size, 9000u);
      EXPECT_GT(block.expires_at, machine.world.clock().UnixNow());
      EXPECT_EQ(block.keep_until.value, 0);
    }
    EXPECT_EQ(blocks.size(), put.size()) << limit;
    EXPECT_EQ(listed, put) << limit;
  }
}

TEST_F(NodeAdminTest, AListingGoesOnThoughWhatItStoodOnIsGone) {
  const Chain first = machine.MakeChain(8, 9000);
  const Chain second = machine.MakeChain(8, 9000);
  EXPECT_THAT(machine.Put(first), Each(IsOk()));
  EXPECT_THAT(machine.Put(second), Each(IsOk()));
  const auto page = Await(admin.ListBlocks(machine.space, "", 3));
  ASSERT_EQ(page.value().blocks.size(), 3u);
  const bool was_first = page.value().blocks[0].run == RunId{first.ids[0]};
  const Chain& gone = was_first ? first : second;
  EXPECT_THAT(Await(machine.store().Delete(machine.space, gone.ids, 0)), IsOk());
  const auto rest = Await(admin.ListBlocks(machine.space, page.value().next, 100));
  EXPECT_LE(rest.value().blocks.size(), 8u);
  for (const BlockInfo& block : rest.value().blocks) EXPECT_NE(block.run, RunId{gone.ids[0]});
}

TEST_F(NodeAdminTest, RefusesWrongCursorsLimitsAndNamespaces) {
  EXPECT_THAT(Await(admin.ListBlocks(machine.space, "", 0)), HasCode(Code::kInvalid));
  EXPECT_THAT(Await(admin.ListBlocks(machine.space, "", 10'001)), HasCode(Code::kInvalid));
  for (const char* cursor : {"x", "0", "0.0.zz", "0.0.abc", "0.0.0102", "-1.0.", "1..", "0.0"}) {
    EXPECT_THAT(Await(admin.ListBlocks(machine.space, cursor, 5)), HasCode(Code::kInvalid))
        << cursor;
  }
  EXPECT_THAT(Await(admin.ListBlocks({}, "", 5)), HasCode(Code::kInvalid));
}

TEST_F(NodeAdminTest, InspectsABlockDownToItsShards) {
  const Chain chain = machine.MakeChain(10, 200'000);
  EXPECT_THAT(machine.Put(chain), Each(IsOk()));
  const auto details = Await(admin.Inspect(machine.space, chain.ids, 9, true));
  ASSERT_THAT(details, IsOk());
  EXPECT_EQ(details.value().block.id, chain.ids[9]);
  EXPECT_EQ(details.value().block.size, 200'000u);
  EXPECT_EQ(details.value().block.run, RunId{chain.ids[8]});
  EXPECT_EQ(details.value().index_places.size(), 3u);
  ASSERT_EQ(details.value().shards.size(), details.value().manifest.shard_count());
  for (const ShardInfo& shard : details.value().shards) {
    EXPECT_TRUE(shard.present);
    EXPECT_LT(shard.place, 12u);
    EXPECT_THAT(shard.verified, IsOk());
  }
  EXPECT_THAT(Await(admin.Inspect(machine.space, chain.ids, 10, false)), HasCode(Code::kInvalid));
  const Chain other = machine.MakeChain(1, 1000);
  EXPECT_THAT(Await(admin.Inspect(machine.space, other.ids, 0, false)), HasCode(Code::kNotFound));
}

TEST_F(NodeAdminTest, InspectShowsDamageAndLoss) {
  const Chain chain = machine.MakeChain(1, 600'000);
  EXPECT_THAT(machine.Put(chain), Each(IsOk()));
  auto details = Await(admin.Inspect(machine.space, chain.ids, 0, false));
  const ShardInfo shard = details.value().shards[0];
  LocalTarget& target = *machine.world.node().places()[shard.place].target;
  EXPECT_THAT(Await(target.Drop(details.value().block.stripe)), IsOk());
  details = Await(admin.Inspect(machine.space, chain.ids, 0, true));
  EXPECT_FALSE(details.value().shards[0].present);
  EXPECT_TRUE(details.value().shards[1].present);
}

TEST_F(NodeAdminTest, TellsOfTargetsNamespacesAndCounters) {
  const auto targets = Await(admin.ListTargets());
  ASSERT_EQ(targets.value().size(), 12u);
  for (uint32_t i = 0; i < 12; ++i) {
    EXPECT_EQ(targets.value()[i].place, i);
    EXPECT_EQ(targets.value()[i].state, TargetInfo::State::kServing);
    EXPECT_GT(targets.value()[i].capacity_bytes, 0u);
  }
  const NamespaceOptions options{
      .name = "more", .fingerprint = "f", .quota_bytes = 1 * kGiB, .token = "t"};
  EXPECT_THAT(Await(admin.CreateSpace(options)), IsOk());
  EXPECT_THAT(Await(admin.CreateSpace(options)), HasCode(Code::kConflict));
  const auto spaces = Await(admin.ListSpaces());
  ASSERT_EQ(spaces.value().size(), 2u);
  EXPECT_EQ(spaces.value()[0].options.name, "more");
  EXPECT_EQ(spaces.value()[0].options.quota_bytes, 1 * kGiB);
  EXPECT_EQ(spaces.value()[0].options.token, "");
  EXPECT_TRUE(spaces.value()[0].has_token);
  EXPECT_THAT(Await(admin.DeleteSpace("more")), IsOk());
  EXPECT_THAT(Await(admin.DeleteSpace("more")), HasCode(Code::kNotFound));
  const Chain chain = machine.MakeChain(2, 5000);
  EXPECT_THAT(machine.Put(chain), Each(IsOk()));
  EXPECT_EQ(Await(admin.Stats()).value().puts_stored, 2u);
}

TEST_F(NodeAdminTest, CreatesListsAndDeletesNamespacesInMemory) {
  const NamespaceOptions options{.name = "window", .ttl_seconds = 180, .medium = Medium::kMemory};
  EXPECT_THAT(Await(admin.CreateSpace(options)), IsOk());
  EXPECT_THAT(Await(admin.CreateSpace(options)), HasCode(Code::kConflict));
  EXPECT_THAT(Await(admin.CreateSpace({.name = "window"})), HasCode(Code::kConflict));
  EXPECT_THAT(Await(admin.CreateSpace({.name = "tests", .medium = Medium::kMemory})),
              HasCode(Code::kConflict));
  const auto spaces = Await(admin.ListSpaces());
  ASSERT_EQ(spaces.value().size(), 2u);
  EXPECT_EQ(spaces.value()[1].options.name, "window");
  EXPECT_EQ(spaces.value()[1].options.medium, Medium::kMemory);
  EXPECT_THAT(Await(admin.DeleteSpace("window")), IsOk());
  EXPECT_EQ(Await(admin.ListSpaces()).value().size(), 1u);
}

TEST_F(NodeAdminTest, ScrubsEveryShardOfWhatWasPut) {
  const Chain chain = machine.MakeChain(2, 5000);
  EXPECT_THAT(machine.Put(chain), Each(IsOk()));
  EXPECT_THAT(Await(admin.StartScrub(0)), IsOk());
  MaintenanceStatus scrub = Await(admin.ScrubStatus()).value();
  for (int i = 0; i < 1000 && scrub.running; ++i) {
    machine.world.clock().Await(machine.world.clock().SleepUntil(
        machine.world.clock().Now() + Millis(10), nullptr));
    scrub = Await(admin.ScrubStatus()).value();
  }
  EXPECT_EQ(scrub.passes, 1u);
  EXPECT_GE(scrub.shards_checked, 3u);  // A stripe of 10,000 bytes has one data shard and two more.
  EXPECT_EQ(scrub.shards_damaged, 0u);
  EXPECT_THAT(Await(admin.StopScrub()), IsOk());
  EXPECT_FALSE(Await(admin.RepairStatus()).value().running);
}

}  // namespace
}  // namespace cairn::kv
