// What the store's policy model must do at its borders: hold all, hold by LRU, and expire.
#include "tools/cachesim/store_policy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/status_matchers.h"
#include "tests/unit/planner/naive_caches.h"
#include "tools/cachesim/lru_curve.h"
#include "tools/cachesim/ttl_curve.h"

namespace cairn::tools {
namespace {

using testing::HasCode;

constexpr uint64_t kBlockTokens = 16;

StorePolicyOptions Options(uint64_t capacity_blocks, int64_t ttl_ms) {
  // One byte per token, one shard, no parity: blocks of 16 bytes, so that capacity counts blocks.
  return {.capacity_bytes = capacity_blocks * kBlockTokens,
          .segment_bytes = 32 * kBlockTokens,
          .block_tokens = kBlockTokens,
          .bytes_per_token = 1,
          .run_blocks = 4,
          .data_shards = 1,
          .parity_shards = 0,
          .shard_bytes_min = 1,
          .record_bytes = 1,
          .classes = {{.name = "agent", .ttl_ms = ttl_ms, .refresh_on_hit = true}}};
}

StorePolicyCounts Replay(const std::vector<NaiveRequest>& trace,
                         const StorePolicyOptions& options) {
  StorePolicy policy = StorePolicy::Create(options).value();
  for (const NaiveRequest& request : trace) policy.Add(request.access(), 0);
  EXPECT_LE(policy.used_bytes(), options.capacity_bytes);
  const SpaceUse space = policy.Space();
  EXPECT_NEAR(space.free + space.dead + space.overhead + space.live,
              static_cast<double>(options.capacity_bytes), 1);
  EXPECT_GE(std::min({space.free, space.dead, space.overhead, space.live}), 0);
  return policy.counts();
}

TEST(StorePolicy, IsIdealWhenNothingMustGo) {
  const auto trace = RandomTrace(5, kBlockTokens, 400);
  LruCurve curve(kBlockTokens);
  for (const NaiveRequest& request : trace) curve.Add(request.access());
  const StorePolicyCounts counts = Replay(trace, Options(1'000'000, 1'000'000'000));
  EXPECT_DOUBLE_EQ(counts.HitRate(), curve.IdealHitRate());
  EXPECT_EQ(counts.stripes_evicted, 0u);
  EXPECT_DOUBLE_EQ(counts.WriteAmplification(), 1);
}

TEST(StorePolicy, FollowsTheTtlWhenOnlyTimeBounds) {
  auto options = Options(1'000'000, 30'000);
  options.run_blocks = 1;  // Then each block expires alone, as in the TTL curve.
  const auto trace = RandomTrace(6, kBlockTokens, 400);
  EXPECT_NEAR(Replay(trace, options).HitRate(),
              NaiveTtl(trace, kBlockTokens, 30'000, NaiveTtlKind::kRefreshed), 1e-12);
  options.classes[0].refresh_on_hit = false;
  EXPECT_NEAR(Replay(trace, options).HitRate(),
              NaiveTtl(trace, kBlockTokens, 30'000, NaiveTtlKind::kFixed), 1e-12);
}

// The store as its rules say it, with room for everything: what is missing of a run is one stripe,
// which lives and dies as one.
class NaiveStore {
 public:
  explicit NaiveStore(const StorePolicyOptions& options) : options_(options) {}

  void Add(const NaiveRequest& request, size_t retention) {
    DropExpired(request);
    size_t hits = 0;
    while (hits < request.blocks.size() && Holder(request.blocks[hits])) ++hits;
    hit_tokens += std::min(request.input_tokens, hits * options_.block_tokens);
    for (const uint64_t id : request.blocks) {
      NaiveStripe* used = Holder(id);
      if (used == nullptr) continue;
      const RetentionClass& rules = options_.classes[used->retention];
      if (rules.refresh_on_hit) used->expires_ms = request.time_ms + rules.ttl_ms;
    }
    Write(request, retention);
  }

  uint64_t hit_tokens = 0;
  uint64_t written = 0;
  uint64_t expired = 0;
  uint64_t bytes = 0;

 private:
  struct NaiveStripe {
    std::vector<uint64_t> blocks;
    int64_t expires_ms = 0;
    size_t retention = 0;
  };

  NaiveStripe* Holder(uint64_t id) {
    for (NaiveStripe& stripe : stripes_) {
      if (std::count(stripe.blocks.begin(), stripe.blocks.end(), id) > 0) return &stripe;
    }
    return nullptr;
  }

  // Of those that the request asks for: what nobody looks for is found by reclaims only.
  void DropExpired(const NaiveRequest& request) {
    for (const uint64_t id : request.blocks) {
      const NaiveStripe* stripe = Holder(id);
      if (stripe == nullptr || stripe->expires_ms >= request.time_ms) continue;
      stripes_.erase(stripes_.begin() + (stripe - stripes_.data()));
      ++expired;
    }
  }

  void Write(const NaiveRequest& request, size_t retention) {
    std::vector<NaiveStripe> fresh;
    for (size_t begin = 0; begin < request.blocks.size(); begin += options_.run_blocks) {
      NaiveStripe stripe{{}, request.time_ms + options_.classes[retention].ttl_ms, retention};
      const size_t end = std::min(request.blocks.size(), begin + options_.run_blocks);
      for (size_t i = begin; i < end; ++i) {
        if (Holder(request.blocks[i]) == nullptr) stripe.blocks.push_back(request.blocks[i]);
      }
      if (!stripe.blocks.empty()) fresh.push_back(std::move(stripe));
    }
    for (NaiveStripe& stripe : fresh) {
      const uint64_t payload = stripe.blocks.size() * options_.block_tokens;
      const uint64_t unit = options_.record_bytes;
      bytes += (payload + unit - 1) / unit * unit * (1 + options_.parity_shards);
      ++written;
      stripes_.push_back(std::move(stripe));
    }
  }

  const StorePolicyOptions options_;
  std::vector<NaiveStripe> stripes_;
};

TEST(StorePolicy, EqualsANaiveStoreForEveryTraceAndShape) {
  uint64_t expired = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    kv::Random random(seed);
    auto options = Options(1'000'000, 1'000 + static_cast<int64_t>(random.Below(60'000)));
    options.run_blocks = 1 + static_cast<uint32_t>(random.Below(9));
    options.parity_shards = static_cast<uint32_t>(random.Below(3));
    options.record_bytes = 1 + random.Below(50);
    options.classes[0].refresh_on_hit = random.Chance(1, 2);
    options.classes.push_back({.name = "chat",
                               .ttl_ms = 1'000 + static_cast<int64_t>(random.Below(60'000)),
                               .refresh_on_hit = random.Chance(1, 2)});
    StorePolicy policy = StorePolicy::Create(options).value();
    NaiveStore naive(options);
    for (const NaiveRequest& request : RandomTrace(seed, kBlockTokens, 250)) {
      const size_t retention = random.Below(2);
      policy.Add(request.access(), retention);
      naive.Add(request, retention);
      ASSERT_EQ(policy.counts().hit_tokens, naive.hit_tokens) << "seed " << seed;
    }
    EXPECT_EQ(policy.counts().stripes_written, naive.written) << "seed " << seed;
    EXPECT_EQ(policy.counts().stripes_expired, naive.expired) << "seed " << seed;
    EXPECT_EQ(policy.counts().bytes_written, naive.bytes) << "seed " << seed;
    EXPECT_EQ(policy.counts().stripes_evicted, 0u);
    expired += naive.expired;
  }
  EXPECT_GT(expired, 1'000u);
}

// Sessions come back at random here, so age tells little, and what counts is that whole chains
// stay: the hardest case for segments, which evict chains in parts.
TEST(StorePolicy, StaysNearLruWhenCapacityBounds) {
  const auto trace = RandomTrace(7, kBlockTokens, 3'000);
  for (const size_t capacity : {800, 1'600, 3'200}) {
    const StorePolicyCounts counts = Replay(trace, Options(capacity, 1'000'000'000));
    EXPECT_NEAR(counts.HitRate(), NaiveLru(trace, kBlockTokens, capacity), 0.08) << capacity;
    EXPECT_GT(counts.stripes_evicted, 0u);
    EXPECT_LT(counts.WriteAmplification(), 1.31);
  }
}

TEST(StorePolicy, HoldsNoMoreThanItsCapacityWhenStripesOutgrowSegments) {
  auto options = Options(40, 1'000'000'000);
  options.segment_bytes = 2 * kBlockTokens;
  options.run_blocks = 16;  // Stripes of up to eight segments.
  const auto trace = RandomTrace(8, kBlockTokens, 500);
  EXPECT_LE(Replay(trace, options).HitRate(), NaiveLru(trace, kBlockTokens, 60));
}

TEST(StorePolicy, PaysForParityAndForNarrowStripes) {
  auto options = Options(1'000'000, 1'000'000'000);
  options.data_shards = 10;
  options.parity_shards = 2;
  options.shard_bytes_min = 4 * kBlockTokens;  // A run of 4 blocks fills one shard only.
  const std::vector<NaiveRequest> trace = {{0, 64, {1, 2, 3, 4}}};
  EXPECT_EQ(Replay(trace, options).bytes_written, 64u * 3);  // One shard and two copies of it.
  options.shard_bytes_min = 1;
  options.record_bytes = 16;
  EXPECT_EQ(Replay(trace, options).bytes_written, 6u * 16);  // 4 records hold it: none is empty.
}

TEST(StorePolicy, RefusesImpossibleOptions) {
  auto options = Options(32, 1'000);
  EXPECT_THAT(StorePolicy::Create(options), HasCode(kv::Code::kInvalid));  // One segment.
  options = Options(1'000, 1'000);
  options.move_percent_max = 101;
  EXPECT_THAT(StorePolicy::Create(options), HasCode(kv::Code::kInvalid));
  options = Options(1'000, 1'000);
  options.classes.clear();
  EXPECT_THAT(StorePolicy::Create(options), HasCode(kv::Code::kInvalid));
}

}  // namespace
}  // namespace cairn::tools
