// Puts beside slow targets: what they do not wait for arrives, or is known to be lacking.
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/kvstore/client/store_fixture.h"

namespace cairn::kv {
namespace {

using testing::HasCode;
using testing::IsOk;
using ::testing::Each;

// Some targets of a store have taken 100 ms for each append lately.
class LateAppends : public ::testing::Test {
 protected:
  void Learn(std::vector<size_t> slow) {
    for (int put = 0; put < 12; ++put) {
      Event hold(store_.loop());
      for (const size_t i : slow) store_.target(i).hold = &hold;
      const Chain chain = store_.MakeChain({1'200'000});
      auto outcome = store_.store().Put(store_.PutOf(chain, 0, 1));
      store_.loop().RunReady();
      if (put > 0) store_.clock().Advance(100);
      hold.Set();
      EXPECT_THAT(store_.Await(std::move(outcome)), Each(IsOk()));
      for (const size_t i : slow) store_.target(i).hold = nullptr;
    }
    store_.loop().RunReady();
    for (size_t i = 0; i < 12; ++i) store_.target(i).shards.clear();
  }
  // Whether a put waits for these, while their appends are held.
  bool WaitsFor(std::vector<size_t> held) {
    return WaitsFor(held, &FakeTarget::hold, store_.MakeChain({1'200'000}));
  }
  // The same of a put of this block, while what they do so is held.
  bool WaitsFor(std::vector<size_t> held, Event* FakeTarget::*what, const Chain& chain) {
    Event hold(store_.loop());
    for (const size_t i : held) store_.target(i).*what = &hold;
    auto put = store_.store().Put(store_.PutOf(chain, 0, 1));
    store_.loop().RunReady();
    const bool waits = !put.done();
    hold.Set();
    EXPECT_THAT(store_.Await(std::move(put)), Each(IsOk()));
    for (const size_t i : held) store_.target(i).*what = nullptr;
    store_.loop().RunReady();
    return waits;
  }
  LateAppends() { store_.placement().recovers = false; }
  ~LateAppends() override { store_.Await(store_.store().Stop()); }

  Store store_;
};

TEST_F(LateAppends, APutDoesNotWaitForASlowTargetAndItsShardArrives) {
  Learn({11});
  const uint64_t late_before = store_.stats().shards_late;
  for (uint64_t put = 1; put <= 24; ++put) {  // The slow one has a data shard in most of them.
    Event hold(store_.loop());
    store_.target(11).hold = &hold;
    const Chain chain = store_.MakeChain({1'200'000, 4'096});
    Chain lent{.ids = chain.ids, .bytes = {}};
    for (const Bytes& bytes : chain.bytes) lent.bytes.push_back(Bytes::CopyOf(bytes.span()));
    EXPECT_THAT(store_.Put(lent), Each(IsOk()));
    for (Bytes& bytes : lent.bytes) std::fill(bytes.span().begin(), bytes.span().end(), 0);
    EXPECT_EQ(store_.stats().shards_late - late_before, put);
    EXPECT_EQ(store_.target(11).shards.size(), put - 1);
    store_.ExpectAllReadable(chain);
    hold.Set();
    store_.loop().RunReady();
    EXPECT_EQ(store_.target(11).shards.size(), put);
    for (const size_t lost : {1, 2}) store_.target(lost).down = true;
    store_.ExpectAllReadable(chain);
    for (const size_t lost : {1, 2}) store_.target(lost).down = false;
    store_.target(11).hold = nullptr;
  }
  EXPECT_EQ(store_.stats().stripes_degraded, 0u);
  EXPECT_EQ(store_.lacking().size(), 0u);
}

TEST_F(LateAppends, OfTwoSlowTargetsOneIsWaitedFor) {
  Learn({3, 4});
  EXPECT_TRUE(WaitsFor({3, 4}));
  EXPECT_FALSE(WaitsFor({3}));
  EXPECT_FALSE(WaitsFor({4}));
}

TEST_F(LateAppends, OrdinaryTargetsAreAlwaysWaitedFor) {
  Learn({3});
  EXPECT_TRUE(WaitsFor({5}));
}

TEST_F(LateAppends, HalfOfTheParityIsAlwaysWaitedFor) {
  store_.space = store_.Attach({.name = "wide", .fingerprint = "f", .data_shards = 8,
                                .parity_shards = 4, .run_blocks = 8}).value();
  Learn({3, 4, 5});
  EXPECT_TRUE(WaitsFor({3, 4, 5}));
  EXPECT_FALSE(WaitsFor({4, 5}));
}

TEST_F(LateAppends, BesideALostTargetTheSlowOneIsWaitedFor) {
  Learn({3});
  store_.target(7).down = true;
  EXPECT_TRUE(WaitsFor({3}));
  EXPECT_EQ(store_.stats().stripes_degraded, 1u);
}

TEST_F(LateAppends, ALateShardThatFailsIsKnownToBeLacking) {
  Learn({11});
  Event hold(store_.loop());
  store_.target(11).hold = &hold;
  const Chain chain = store_.MakeChain({1'200'000});
  EXPECT_THAT(store_.Put(chain), Each(IsOk()));
  EXPECT_EQ(store_.lacking().size(), 0u);
  store_.target(11).down = true;
  hold.Set();
  store_.loop().RunReady();
  EXPECT_EQ(store_.lacking().size(), 1u);
}

TEST_F(LateAppends, ALateShardOfAPutThatWasRefusedGoes) {
  Learn({11});
  Event hold(store_.loop());
  Event late(store_.loop());
  for (size_t i = 0; i < 12; ++i) store_.target(i).hold = i == 11 ? &late : &hold;
  const Chain chain = store_.MakeChain({1'200'000});
  auto put = store_.store().Put(store_.PutOf(chain, 0, 1));
  store_.loop().RunReady();
  EXPECT_THAT(store_.Await(store_.store().DeleteSpace("tests")), IsOk());
  hold.Set();
  EXPECT_THAT(store_.Await(std::move(put)), Each(HasCode(Code::kNotFound)));
  late.Set();
  store_.loop().RunReady();
  EXPECT_EQ(store_.target(11).appends, 13);
  for (size_t i = 0; i < 12; ++i) EXPECT_TRUE(store_.target(i).shards.empty()) << i;
}

// It would come back by a crash, from a shard that came after its deletion.
TEST_F(LateAppends, WhereStripesAreRecoveredFromShardsAllAreWaitedFor) {
  store_.placement().recovers = true;
  Learn({11});
  EXPECT_TRUE(WaitsFor({11}));
  EXPECT_EQ(store_.stats().shards_late, 0u);
}

// Which of them were late, nobody could say: it is the load.
TEST_F(LateAppends, OfMoreSlowTargetsThanAStripeBearsAllAreWaitedFor) {
  Learn({3, 4, 5});
  EXPECT_TRUE(WaitsFor({3}));
}

TEST_F(LateAppends, WhoPutsAgainAsksAsFewSlowTargetsAsTheStripeMayLack) {
  Learn({3, 4});
  const Chain chain = store_.MakeChain({1'200'000});
  EXPECT_THAT(store_.Put(chain), Each(IsOk()));
  store_.loop().RunReady();
  const auto waits_for = [&](std::vector<size_t> held) {
    return WaitsFor(held, &FakeTarget::hold_questions, chain);
  };
  const uint64_t appends = store_.target(0).appends;
  EXPECT_NE(waits_for({3}), waits_for({4}));
  EXPECT_TRUE(waits_for({3, 4}));
  EXPECT_TRUE(waits_for({5}));
  EXPECT_EQ(store_.target(0).appends, appends);
  // Beside one that is away all slow ones are asked, and the blocks are not stored again.
  store_.target(7).down = true;
  EXPECT_TRUE(waits_for({3}));
  EXPECT_TRUE(waits_for({4}));
  EXPECT_EQ(store_.target(0).appends, appends);
}

TEST_F(LateAppends, ATargetThatRecoversIsWaitedForAgain) {
  Learn({11});
  EXPECT_FALSE(WaitsFor({11}));
  for (int put = 0; put < 32; ++put) {
    EXPECT_THAT(store_.Put(store_.MakeChain({1'200'000})), Each(IsOk()));
  }
  EXPECT_TRUE(WaitsFor({11}));
}

}  // namespace
}  // namespace cairn::kv
