// Reads into the callers' own memory beside a target that is late: given up, and rebuilt.
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/kvstore/client/store_fixture.h"

namespace cairn::kv {
namespace {

using testing::IsOk;
using ::testing::Each;

class LateReads : public ::testing::Test {
 protected:
  LateReads() {
    for (int i = 0; i < 8; ++i) {
      chains_.push_back(store_.MakeChain({1'200'000}));
      EXPECT_THAT(store_.Put(chains_.back()), Each(IsOk()));
    }
  }
  ~LateReads() override { store_.Await(store_.store().Stop()); }

  void ReadAll() {
    for (const Chain& chain : chains_) EXPECT_THAT(store_.Get(chain, 0), IsOk());
  }
  // Enough to know how long reads take, and to earn so much that some may be given up.
  void Learn() {
    for (int round = 0; round < 8; ++round) ReadAll();
  }
  // From now on, so long after a read began.
  void MakeLate(size_t target, int64_t millis) {
    store_.target(target).late = [this, millis](Instant give_up_at) {
      const Instant comes_at = store_.clock().Now() + Millis(millis);
      const bool given_up = give_up_at < comes_at;
      const Instant until = given_up ? give_up_at : comes_at;
      ++(given_up ? given_up_ : awaited_);
      while (store_.clock().Now() < until) store_.clock().Advance(1);
      return given_up;
    };
  }

  Store store_;
  std::vector<Chain> chains_;
  int given_up_ = 0;
  int awaited_ = 0;
};

TEST_F(LateReads, AreGivenUpAndRebuilt) {
  Learn();
  MakeLate(3, 300);
  const Instant began = store_.clock().Now();
  ReadAll();
  EXPECT_GT(given_up_, 0);
  EXPECT_EQ(awaited_, 0);
  EXPECT_LT(store_.clock().Now() - began, Millis(300));
  EXPECT_EQ(store_.stats().hedges, static_cast<uint64_t>(given_up_));
  EXPECT_EQ(store_.stats().hedges_won, static_cast<uint64_t>(given_up_));
}

TEST_F(LateReads, AreAwaitedAsLongAsNobodyKnowsWhatIsLate) {
  MakeLate(3, 300);
  ReadAll();
  EXPECT_EQ(given_up_, 0);
  EXPECT_GT(awaited_, 0);
  EXPECT_EQ(store_.stats().hedges, 0u);
}

TEST_F(LateReads, AreAwaitedWhenTheyAreOnlyALittleLate) {
  Learn();
  MakeLate(3, 15);
  ReadAll();
  EXPECT_EQ(given_up_, 0);
  EXPECT_GT(awaited_, 0);
}

// A rebuild reads ten times as much: where much is late now and then, that would make it worse.
TEST_F(LateReads, AreGivenUpNoMoreOftenThanReadsAreHedged) {
  Learn();
  MakeLate(3, 300);
  const auto always = store_.target(3).late;
  int asked = 0;
  store_.target(3).late = [&](Instant at) { return ++asked % 5 == 0 && always(at); };
  uint64_t reads = 8 * chains_.size();
  std::erase_if(chains_, [&](const Chain& chain) {  // It holds nothing of their data.
    const int before = asked;
    EXPECT_THAT(store_.Get(chain, 0), IsOk());
    return ++reads, asked == before;
  });
  for (uint64_t round = 0; round < 40; ++round) ReadAll();
  reads += 40 * chains_.size();
  EXPECT_GT(given_up_, 0);
  EXPECT_GT(awaited_, 0);
  // A tenth of the bytes; the last piece of a block is shorter.
  EXPECT_LE(static_cast<uint64_t>(given_up_), reads / 8 + 1);
}

// More come late than parity replaces; but they come.
TEST_F(LateReads, AreReadOnceMoreWhenTooManyWereGivenUp) {
  Learn();
  for (size_t i = 0; i < 5; ++i) MakeLate(i, 300);
  ReadAll();
  EXPECT_GT(given_up_, 0);
  EXPECT_GT(awaited_, 0);
}

TEST_F(LateReads, AreReadOnceMoreWhenTheOthersAreAway) {
  Learn();
  for (const size_t away : {7, 8}) store_.target(away).down = true;
  MakeLate(3, 300);
  ReadAll();
  EXPECT_GT(given_up_, 0);
  EXPECT_GT(awaited_, 0);
}

TEST_F(LateReads, TellPutsWhomNotToWaitFor) {
  store_.placement().recovers = false;
  Learn();
  MakeLate(3, 300);
  for (int round = 0; round < 3; ++round) ReadAll();
  store_.target(3).late = {};
  Event hold(store_.loop());
  store_.target(3).hold = &hold;
  const Chain chain = store_.MakeChain({1'200'000});
  auto put = store_.store().Put(store_.PutOf(chain, 0, 1));
  store_.loop().RunReady();
  EXPECT_TRUE(put.done());
  hold.Set();
  EXPECT_THAT(store_.Await(std::move(put)), Each(IsOk()));
  EXPECT_EQ(store_.stats().shards_late, 1u);
}

// Who is late is slow, not away: its shards count, and puts go on.
TEST_F(LateReads, DoNotMakeATargetSuspect) {
  Learn();
  MakeLate(3, 300);
  ReadAll();
  ASSERT_GE(given_up_, 3);
  store_.target(3).late = {};
  const int appends = store_.target(3).appends;
  EXPECT_THAT(store_.Put(store_.MakeChain({1'200'000})), Each(IsOk()));
  EXPECT_GT(store_.target(3).appends, appends);
}

}  // namespace
}  // namespace cairn::kv
