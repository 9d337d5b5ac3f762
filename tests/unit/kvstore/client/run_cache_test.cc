// What is remembered of runs, and for how long.
#include "kvstore/client/run_cache.h"

#include <gtest/gtest.h>

namespace cairn::kv {
namespace {

IndexedStripe StripeOf(uint64_t stripe, std::vector<uint64_t> blocks) {
  IndexedStripe indexed;
  indexed.manifest.stripe = StripeId{{1, stripe}};
  indexed.expires_at = {1000};
  for (const uint64_t block : blocks) {
    indexed.manifest.blocks.push_back({.id = BlockId{{2, block}}, .offset = 0, .size = 1});
  }
  return indexed;
}

TEST(KnownRun, FindsBlocksOfAllStripes) {
  KnownRun run;
  run.Add(StripeOf(1, {10, 11}));
  run.Add(StripeOf(2, {12, 11}));
  EXPECT_EQ(run.Find(BlockId{{2, 11}}).size(), 2u);
  EXPECT_EQ(run.Find(BlockId{{2, 12}}).size(), 1u);
  EXPECT_TRUE(run.Find(BlockId{{2, 13}}).empty());
}

TEST(KnownRun, RemovingAStripeTellsReadsThatHoldIt) {
  KnownRun run;
  run.Add(StripeOf(1, {10}));
  const KnownStripePtr held = run.Find(BlockId{{2, 10}})[0].stripe;
  run.Remove(StripeId{{1, 1}});
  EXPECT_TRUE(held->gone);
  EXPECT_TRUE(run.Find(BlockId{{2, 10}}).empty());
}

TEST(KnownRun, ExpiryOnlyRises) {
  KnownRun run;
  run.Add(StripeOf(1, {10}));
  IndexedStripe earlier = StripeOf(1, {10});
  earlier.expires_at = {5};
  run.Add(std::move(earlier));
  ASSERT_EQ(run.stripes().size(), 1u);
  EXPECT_EQ(run.stripes()[0]->expires_at.value, 1000);
}

TEST(RunCache, DropsTheLeastRecentlyUsed) {
  RunCache cache(8 * 1024);
  const auto key = [](uint64_t i) { return RunKey{{}, RunId{{0, i}}}; };
  for (uint64_t i = 0; i < 100; ++i) {
    KnownRun run;
    run.Add(StripeOf(i, {i}));
    cache.Insert(key(i), std::move(run));
    ASSERT_NE(cache.Find(key(0)), nullptr);  // Used all the time.
    ASSERT_LE(cache.memory_bytes(), 8u * 1024);
  }
  EXPECT_EQ(cache.Find(key(1)), nullptr);
  EXPECT_NE(cache.Find(key(99)), nullptr);
}

}  // namespace
}  // namespace cairn::kv
