// What codec.h promises: any m losses come back, ranges too, and damage is seen.
#include "erasure/codec.h"

#include <gtest/gtest.h>

#include <bit>

#include "tests/unit/erasure/stripe.h"

namespace cairn::erasure {
namespace {

struct Width {
  uint8_t data_shards;
  uint8_t parity_shards;
};
void PrintTo(const Width& width, std::ostream* out) {
  *out << int{width.data_shards} << "+" << int{width.parity_shards};
}

class CodecOfWidth : public ::testing::TestWithParam<Width> {
 protected:
  Codec codec_ = MakeCodec(GetParam().data_shards, GetParam().parity_shards);
};

TEST_P(CodecOfWidth, RebuildsFromEveryLossPattern) {
  const Stripe stripe(codec_, 333);
  for (uint64_t lost = 0; lost < uint64_t{1} << codec_.total_shards(); ++lost) {
    if (static_cast<size_t>(std::popcount(lost)) > codec_.parity_shards()) continue;
    ASSERT_TRUE(stripe.Rebuilds(lost)) << std::hex << lost;
  }
}

TEST_P(CodecOfWidth, RebuildsARangeAlone) {
  const Stripe stripe(codec_, 1000);
  for (uint64_t lost = 1; lost < uint64_t{1} << codec_.total_shards(); ++lost) {
    if (static_cast<size_t>(std::popcount(lost)) != codec_.parity_shards()) continue;
    ASSERT_TRUE(stripe.Rebuilds(lost, 0, 1)) << std::hex << lost;
    ASSERT_TRUE(stripe.Rebuilds(lost, 129, 512)) << std::hex << lost;
    ASSERT_TRUE(stripe.Rebuilds(lost, 999, 1000)) << std::hex << lost;
  }
}

TEST_P(CodecOfWidth, RefusesMoreLossesThanParity) {
  const Stripe stripe(codec_, 100);
  const uint64_t lost = (uint64_t{1} << (codec_.parity_shards() + 1)) - 1;
  EXPECT_FALSE(stripe.Rebuilds(lost));
}

TEST_P(CodecOfWidth, RebuildsOneOfSeveralLost) {
  const Stripe stripe(codec_, 200);
  const size_t k = codec_.data_shards();
  for (size_t only = 0; only < codec_.total_shards(); ++only) {
    std::vector<Survivor> survivors;  // The last k shards but `only`: as much parity as there is.
    for (size_t i = codec_.total_shards(); i-- > 0 && survivors.size() < k;) {
      if (i != only) survivors.push_back({static_cast<uint8_t>(i), stripe.shard(i).bytes()});
    }
    GuardedShard rebuilt(200, 3);
    const Wanted wanted{static_cast<uint8_t>(only), rebuilt.bytes()};
    ASSERT_TRUE(codec_.Reconstruct(survivors, {&wanted, 1}));
    ASSERT_EQ(rebuilt, stripe.shard(only)) << only;
  }
}

TEST_P(CodecOfWidth, VerifySeesOneFlippedBitInAnyShard) {
  Stripe stripe(codec_, 9000);  // More than two pieces of Verify's scratch.
  EXPECT_TRUE(codec_.Verify(stripe.data(), stripe.parity()));
  for (size_t i = 0; i < codec_.total_shards(); ++i) {
    for (const size_t at : {size_t{0}, size_t{4096}, size_t{8999}}) {
      stripe.shard(i).bytes()[at] ^= 0x10;
      EXPECT_FALSE(codec_.Verify(stripe.data(), stripe.parity())) << i << " at " << at;
      stripe.shard(i).bytes()[at] ^= 0x10;
    }
  }
  EXPECT_TRUE(codec_.Verify(stripe.data(), stripe.parity()));
}

TEST_P(CodecOfWidth, EncodeWritesNothingElse) {
  const Stripe stripe(codec_, 301);
  for (size_t i = 0; i < codec_.total_shards(); ++i) EXPECT_TRUE(stripe.shard(i).FenceHolds()) << i;
}

INSTANTIATE_TEST_SUITE_P(Widths, CodecOfWidth,
                         ::testing::Values(Width{2, 1}, Width{4, 2}, Width{6, 3}, Width{10, 2},
                                           Width{10, 4}, Width{1, 2}, Width{1, 8}));

TEST(Codec, EveryShapeRebuildsRandomLosses) {
  kv::Random random(17);
  for (size_t k = 1; k <= kDataShardsMax; ++k) {
    for (size_t m = 0; m <= kParityShardsMax; ++m) {
      const Codec codec = MakeCodec(k, m);
      const Stripe stripe(codec, 70, random.Next());
      for (int round = 0; round < 20; ++round) {
        uint64_t lost = 0;
        while (static_cast<size_t>(std::popcount(lost)) < m) {
          lost |= uint64_t{1} << random.Below(codec.total_shards());
        }
        ASSERT_TRUE(stripe.Rebuilds(lost)) << k << "+" << m << " lost " << std::hex << lost;
      }
    }
  }
}

TEST(Codec, ShortenedStripeHasTheParityOfTheWideOneFilledWithZeros) {
  for (const size_t m : {1u, 2u, 4u, 8u}) {
    for (size_t width = 1; width <= 10; ++width) {
      const Stripe narrow(MakeCodec(width, m), 150);
      const GuardedShard zeros = [] {
        GuardedShard shard(150, 0);
        std::fill(shard.bytes().begin(), shard.bytes().end(), uint8_t{0});
        return shard;
      }();
      auto data = narrow.data();
      while (data.size() < 10) data.push_back(zeros.bytes());
      EXPECT_TRUE(MakeCodec(10, m).Verify(data, narrow.parity())) << width << "+" << m;
    }
  }
}

TEST(Codec, OneDataShardMakesCopiesUnderPQ) {
  const Stripe stripe(MakeCodec(1, 2), 64);
  EXPECT_EQ(stripe.shard(1), stripe.shard(0));
  EXPECT_EQ(stripe.shard(2), stripe.shard(0));
}

TEST(Codec, FewerParityShardsAreAPrefixOfMore) {
  const Stripe four(MakeCodec(10, 4), 100);
  const Stripe eight(MakeCodec(10, 8), 100);
  for (size_t i = 0; i < 14; ++i) EXPECT_EQ(four.shard(i), eight.shard(i)) << i;
}

TEST(Codec, EmptyShardsAreFine) {
  const Stripe stripe(MakeCodec(10, 4), 0);
  EXPECT_TRUE(stripe.Rebuilds(0b1111));
}

TEST(Codec, CreateRefusesWhatDoesNotExist) {
  const auto exists = [](uint8_t k, uint8_t m, CodeId code) {
    return Codec::Create({.data_shards = k, .parity_shards = m, .code = code}).has_value();
  };
  EXPECT_TRUE(exists(1, 0, CodeId::kPQ));
  EXPECT_TRUE(exists(32, 2, CodeId::kPQ));
  EXPECT_TRUE(exists(32, 8, CodeId::kCauchy));
  EXPECT_TRUE(exists(10, 2, CodeId::kCauchy));
  EXPECT_FALSE(exists(0, 2, CodeId::kPQ));
  EXPECT_FALSE(exists(33, 2, CodeId::kPQ));
  EXPECT_FALSE(exists(10, 3, CodeId::kPQ));
  EXPECT_FALSE(exists(10, 9, CodeId::kCauchy));
  EXPECT_FALSE(exists(10, 2, CodeId{0}));
  EXPECT_FALSE(exists(10, 2, CodeId{3}));
}

TEST(CodecDeathTest, BrokenCallsEndTheProcess) {
  const Codec codec = MakeCodec(2, 1);
  Stripe stripe(codec, 50);
  GuardedShard out(50, 0);
  const auto rebuild = [&](std::vector<Survivor> survivors, Wanted wanted) {
    return codec.Reconstruct(survivors, {&wanted, 1});
  };
  const auto a = stripe.data()[0];
  const auto b = stripe.data()[1];
  EXPECT_DEATH((void)rebuild({{0, a}, {0, b}}, {2, out.bytes()}), "check failed");
  EXPECT_DEATH((void)rebuild({{0, a}, {3, b}}, {2, out.bytes()}), "check failed");
  EXPECT_DEATH((void)rebuild({{0, a}, {1, b}}, {1, out.bytes()}), "check failed");
  EXPECT_DEATH((void)rebuild({{0, a}, {1, b.first(49)}}, {2, out.bytes()}), "check failed");
  EXPECT_DEATH((void)rebuild({{0, a}, {1, b}}, {2, out.bytes().first(49)}), "check failed");
  EXPECT_DEATH(codec.Encode(stripe.data(), {}), "check failed");
}

}  // namespace
}  // namespace cairn::erasure
