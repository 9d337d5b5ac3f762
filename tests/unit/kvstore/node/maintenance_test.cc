// Scrub and repair of a whole node on simulated targets.
#include <gtest/gtest.h>

#include <algorithm>

#include "kvstore/node/repairer.h"
#include "kvstore/node/scrubber.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/kvstore/node/machine.h"

namespace cairn::kv {
namespace {

using ::testing::Each;
using testing::HasCode;
using testing::IsOk;

// Repair and scrub only when a test says so.
class Workshop : public Machine {
 public:
  explicit Workshop(const sim::StoreWorldOptions& options = {}) : Machine(options) {
    Restart([] {});
  }
  // Stops the node, lets `change` happen to the machine, and starts it again.
  template <typename Change>
  void Restart(Change change) {
    EXPECT_THAT(world.Stop(), IsOk());
    change();
    world.node_options.repair.automatic = false;
    world.node_options.store.cache.bytes_max = 0;
    Start();
  }
  void Replace(uint32_t target) {
    Restart([&] { world.Wipe(target); });
  }
  // Runs a pass to its end.
  MaintenanceStatus RunPass(MaintenancePass& pass, uint64_t bytes_per_second = 0) {
    EXPECT_THAT(pass.Start(bytes_per_second), IsOk());
    world.clock().RunUntil([&] { return !pass.status().running; });
    return pass.status();
  }
  MaintenanceStatus Repair() { return RunPass(world.node().repairer()); }
  MaintenanceStatus Scrub() { return RunPass(world.node().scrubber()); }

  uint64_t shards() {
    uint64_t count = 0;
    for (const auto& target : world.node().targets()) count += target->log().stats().shards;
    return count;
  }
  // Damages every record of the target: a byte in each of its sectors that hold payload.
  void DamageSome(uint32_t target, uint64_t every) {
    const uint64_t end = world.disk(target).size();
    for (uint64_t at = 64 * kKiB + 16 * kSectorSize; at < end; at += every) {
      world.disk(target).FlipBit(at + 100, 3);
    }
  }
};

std::vector<Chain> PutChains(Workshop& shop, size_t count) {
  std::vector<Chain> chains;
  for (size_t i = 0; i < count; ++i) {
    chains.push_back(shop.MakeChain(8, static_cast<uint32_t>(5'000 + 45'000 * (i % 4))));
    EXPECT_THAT(shop.Put(chains.back()), Each(IsOk()));
  }
  return chains;
}

void ExpectAllReadable(Workshop& shop, const std::vector<Chain>& chains) {
  for (const Chain& chain : chains) EXPECT_EQ(shop.Readable(chain), chain.ids.size());
}

TEST(Repair, AReplacedTargetIsFilledAndTwoMoreMayBeLost) {
  Workshop shop;
  const std::vector<Chain> chains = PutChains(shop, 12);
  const uint64_t shards = shop.shards();
  shop.Replace(4);
  ASSERT_LT(shop.shards(), shards);
  const MaintenanceStatus done = shop.Repair();
  EXPECT_EQ(done.passes, 1u);
  EXPECT_GT(done.shards_repaired, 0u);
  EXPECT_EQ(done.shards_failed, 0u);
  EXPECT_EQ(shop.shards(), shards);
  // Nothing is degraded any more.
  ExpectAllReadable(shop, chains);
  EXPECT_EQ(shop.world.node().stats().degraded_reads, 0u);
  shop.Restart([&] {
    shop.world.Wipe(0);
    shop.world.Wipe(9);
  });
  ExpectAllReadable(shop, chains);
}

TEST(Repair, OneTargetAfterTheOtherMayBeReplaced) {
  Workshop shop;
  const std::vector<Chain> chains = PutChains(shop, 6);
  const uint64_t shards = shop.shards();
  for (uint32_t target = 0; target < 12; ++target) {
    shop.Replace(target);
    EXPECT_EQ(shop.Repair().shards_failed, 0u);
    EXPECT_EQ(shop.shards(), shards) << target;
  }
  ExpectAllReadable(shop, chains);
  EXPECT_EQ(shop.world.node().stats().degraded_reads, 0u);
}

TEST(Repair, WhatIsWholeIsLeftAlone) {
  Workshop shop;
  PutChains(shop, 3);
  const uint64_t before = shop.world.node().stats().bytes_appended;
  const MaintenanceStatus done = shop.Repair();
  EXPECT_EQ(done.shards_checked, shop.shards());
  EXPECT_EQ(done.shards_repaired, 0u);
  EXPECT_EQ(done.bytes_done, 0u);
  EXPECT_EQ(shop.world.node().stats().bytes_appended, before);
}

TEST(Repair, SurvivesACrashInTheMiddle) {
  Workshop shop;
  const std::vector<Chain> chains = PutChains(shop, 12);
  shop.Pass(Seconds(7));
  const uint64_t shards = shop.shards();
  shop.Replace(4);
  ExpectAllReadable(shop, chains);
  EXPECT_GT(shop.world.node().stats().missing_shards, 0u);
  for (const sim::CrashMode mode : {sim::CrashMode::kProcess, sim::CrashMode::kPowerCut}) {
    Repairer& repairer = shop.world.node().repairer();
    ASSERT_THAT(repairer.Start(0), IsOk());
    const uint64_t until = repairer.status().shards_repaired + 5;
    shop.world.clock().RunUntil([&] {
      return repairer.status().shards_repaired >= until || !repairer.status().running;
    });
    shop.Crash(mode);
    shop.Start();
    ExpectAllReadable(shop, chains);
  }
  EXPECT_EQ(shop.Repair().shards_failed, 0u);
  EXPECT_EQ(shop.shards(), shards);
  const uint64_t before = shop.world.node().stats().missing_shards;
  ExpectAllReadable(shop, chains);
  EXPECT_EQ(shop.world.node().stats().missing_shards, before);
}

TEST(Repair, TheHottestComeFirstAndStopEndsIt) {
  Workshop shop;
  const std::vector<Chain> chains = PutChains(shop, 8);
  shop.Replace(4);
  shop.Replace(7);
  shop.Pass(Seconds(60));  // The index is whole again.
  ASSERT_EQ(shop.Lookup(chains[5]).blocks, 8u);  // The only one that was used since.
  Repairer& repairer = shop.world.node().repairer();
  ASSERT_THAT(repairer.Start(1 * kMiB), IsOk());
  EXPECT_THAT(repairer.Start(0), HasCode(Code::kConflict));
  shop.world.clock().RunUntil([&] { return repairer.status().shards_repaired > 0; });
  EXPECT_GT(repairer.status().bytes_left, 0u);
  shop.world.clock().Await(repairer.Stop());
  EXPECT_FALSE(repairer.status().running);
  EXPECT_EQ(repairer.status().passes, 0u);
  const uint64_t before = shop.world.node().stats().degraded_reads;
  EXPECT_EQ(shop.Readable(chains[5]), 8u);
  EXPECT_EQ(shop.world.node().stats().degraded_reads, before);
}

TEST(Repair, FilingTheIndexAnewDoesNotCountAsUse) {
  Workshop shop;
  const std::vector<Chain> chains = PutChains(shop, 6);
  const auto used_at = [&] {
    std::vector<uint32_t> seconds;
    for (const auto& target : shop.world.node().targets()) {
      const auto add = [&](StripeId stripe, const StripeState&) {
        seconds.push_back(shop.world.node().home().index().StateOf(stripe)->last_access);
        return true;
      };
      target->index().states().ForEachAfter(std::nullopt, add);
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds.back();
  };
  const uint32_t before = used_at();
  shop.Pass(Seconds(1000));
  shop.Replace(4);
  shop.Pass(Seconds(60));
  EXPECT_GT(shop.Repair().shards_repaired, 0u);
  EXPECT_EQ(used_at(), before);
}

TEST(Repair, SaysHowLongItWillTake) {
  Workshop shop;
  PutChains(shop, 12);
  shop.Replace(4);
  Repairer& repairer = shop.world.node().repairer();
  ASSERT_THAT(repairer.Start(256 * kKiB), IsOk());
  shop.Pass(Seconds(3));
  const MaintenanceStatus status = repairer.status();
  ASSERT_TRUE(status.running);
  const double by_rate = static_cast<double>(status.bytes_left) / (256.0 * kKiB);
  EXPECT_NEAR(static_cast<double>(status.seconds_left), by_rate, 0.5 * by_rate + 2);
  shop.world.clock().RunUntil([&] { return !repairer.status().running; });
  EXPECT_EQ(repairer.status().seconds_left, 0u);
}

TEST(Repair, KeepsToItsRate) {
  Workshop shop;
  PutChains(shop, 12);
  shop.Replace(4);
  const Instant began = shop.world.clock().Now();
  const MaintenanceStatus done = shop.RunPass(shop.world.node().repairer(), 2 * kMiB);
  const Nanos took = shop.world.clock().Now() - began;
  const double seconds = static_cast<double>(done.bytes_done) / (2.0 * kMiB);
  EXPECT_GT(static_cast<double>(took.value) / 1e9, seconds * 0.8);
  EXPECT_LT(static_cast<double>(took.value) / 1e9, seconds * 1.5 + 1);
}

TEST(Repair, BeginsByItselfAfterALoss) {
  Workshop shop;
  const std::vector<Chain> chains = PutChains(shop, 4);
  const uint64_t shards = shop.shards();
  EXPECT_THAT(shop.world.Stop(), IsOk());
  shop.world.Wipe(2);
  shop.world.node_options.repair.automatic = true;
  shop.Start();
  shop.Pass(Seconds(60));
  EXPECT_EQ(shop.shards(), shards);
  ExpectAllReadable(shop, chains);
}

TEST(Repair, ADeletedStripeDoesNotComeBack) {
  Workshop shop;
  const std::vector<Chain> chains = PutChains(shop, 6);
  shop.Replace(4);
  Repairer& repairer = shop.world.node().repairer();
  ASSERT_THAT(repairer.Start(0), IsOk());
  for (const Chain& chain : chains) {
    EXPECT_THAT(shop.world.clock().Await(shop.store().Delete(shop.space, chain.ids, 0)), IsOk());
  }
  shop.world.clock().RunUntil([&] { return !repairer.status().running; });
  for (const Chain& chain : chains) EXPECT_EQ(shop.Lookup(chain).blocks, 0u);
  shop.Restart([] {});
  for (const Chain& chain : chains) EXPECT_EQ(shop.Lookup(chain).blocks, 0u);
}

TEST(Scrub, RestoresWhatIsDamagedBeforeMoreIs) {
  Workshop shop;
  const std::vector<Chain> chains = PutChains(shop, 12);
  shop.DamageSome(3, 32 * kSectorSize);
  const MaintenanceStatus first = shop.Scrub();
  EXPECT_GT(first.shards_damaged, 0u);
  EXPECT_EQ(first.shards_repaired, first.shards_damaged);
  EXPECT_EQ(first.shards_failed, 0u);
  EXPECT_EQ(shop.Scrub().shards_damaged, 0u);
  // Two more targets may now be damaged through and through.
  shop.DamageSome(5, kSectorSize);
  shop.DamageSome(8, kSectorSize);
  ExpectAllReadable(shop, chains);
}

TEST(Scrub, ReadsEveryShardAndSaysWhatCannotBeRestored) {
  Workshop shop;
  PutChains(shop, 6);
  EXPECT_EQ(shop.Scrub().shards_checked, shop.shards());
  for (uint32_t target = 0; target < 4; ++target) shop.DamageSome(target, kSectorSize);
  const MaintenanceStatus done = shop.Scrub();
  EXPECT_GT(done.shards_failed, 0u);
  EXPECT_EQ(done.passes, 2u);
}

TEST(Scrub, WhatItRestoredSurvivesAPowerCutAfterTheCheckpoint) {
  Workshop shop;
  const std::vector<Chain> chains = PutChains(shop, 12);
  shop.DamageSome(3, 32 * kSectorSize);
  EXPECT_GT(shop.Scrub().shards_repaired, 0u);
  shop.Pass(Seconds(7));
  shop.Crash(sim::CrashMode::kPowerCut);
  shop.Start();
  EXPECT_EQ(shop.Scrub().shards_damaged, 0u);
  ExpectAllReadable(shop, chains);
}

}  // namespace
}  // namespace cairn::kv
