// What may be served of a run, and why not.
#include "kvstore/client/run_judge.h"

#include <gtest/gtest.h>

#include "tests/unit/kvstore/client/fake_target.h"

namespace cairn::kv {
namespace {

constexpr NamespaceId kSpace{{7, 7}};

class RunJudgeTest : public ::testing::Test {
 protected:
  RunJudgeTest() {
    for (uint64_t i = 1; i <= 3; ++i) {
      targets_.push_back(std::make_unique<FakeTarget>(i));
      ports_.push_back(targets_.back().get());
    }
    set_ = std::make_unique<TargetSet>(clock_, ports_);
    judge_ = std::make_unique<RunJudge>(clock_, *set_, gone_);
  }

  // One block of two data shards and a parity shard, on all targets.
  KnownStripePtr AddStripe(uint64_t id, BlockId block) {
    IndexedStripe stripe;
    stripe.manifest.stripe = StripeId{{id, id}};
    stripe.manifest.space = kSpace;
    stripe.manifest.data_shards = 2;
    stripe.manifest.parity_shards = 1;
    stripe.manifest.blocks = {{.id = block, .offset = 0, .size = 1}};
    for (uint8_t i = 0; i < 3; ++i) {
      stripe.manifest.targets.push_back(targets_[i]->id());
      targets_[i]->shards.emplace(stripe.manifest.stripe,
                                  FakeTarget::Shard{.index = {i}, .bytes = Bytes()});
    }
    stripe.expires_at = {clock_.UnixNow().value + 1000};
    run_.Add(stripe);
    run_.complete = true;
    return run_.stripes().back();
  }
  void Lose(uint64_t stripe, size_t target) { targets_[target]->shards.erase({{stripe, stripe}}); }
  MissReason Why(BlockId block) const { return judge_->Find(run_, kSpace, block).reason; }

  FakeClock clock_;
  GoneBlocks gone_;
  std::vector<std::unique_ptr<FakeTarget>> targets_;
  std::vector<TargetPort*> ports_;
  std::unique_ptr<TargetSet> set_;
  std::unique_ptr<RunJudge> judge_;
  KnownRun run_;
};

constexpr BlockId kA{{1, 1}};
constexpr BlockId kB{{2, 2}};

TEST_F(RunJudgeTest, ServesWhatHasEnoughShards) {
  AddStripe(1, kA);
  Lose(1, 0);
  EXPECT_EQ(Why(kA), MissReason::kNone);
  Lose(1, 1);
  EXPECT_EQ(Why(kA), MissReason::kUnavailable);
}

TEST_F(RunJudgeTest, PrefersTheStripeThatMayLoseMore) {
  AddStripe(1, kA);
  const KnownStripePtr whole = AddStripe(2, kA);
  Lose(1, 2);
  EXPECT_EQ(judge_->Find(run_, kSpace, kA).place->stripe, whole);
}

TEST_F(RunJudgeTest, StopsAtTheFirstMiss) {
  AddStripe(1, kA);
  const std::vector<BlockId> wanted{kA, kB, kA};
  const auto answers = judge_->FindPrefix(run_, kSpace, wanted);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_NE(answers[0].place, nullptr);
  EXPECT_EQ(answers[1].reason, MissReason::kAbsent);
  EXPECT_FALSE(judge_->AllUsable(run_, wanted));
}

TEST_F(RunJudgeTest, IsSureOfAMissOnlyWhenTheRunIsComplete) {
  AddStripe(1, kA);
  run_.complete = false;
  EXPECT_EQ(Why(kB), MissReason::kUnavailable);
}

TEST_F(RunJudgeTest, NothingExpiredIsServed) {
  AddStripe(1, kA);
  clock_.Advance(1000);
  EXPECT_EQ(Why(kA), MissReason::kExpired);
}

TEST_F(RunJudgeTest, SaysWhyAStripeIsGoneWhileItGoesAndLater) {
  const KnownStripePtr stripe = AddStripe(1, kA);
  EXPECT_TRUE(gone_.Begin(stripe->manifest.stripe, MissReason::kEvicted));
  EXPECT_FALSE(gone_.Begin(stripe->manifest.stripe, MissReason::kExpired));
  EXPECT_EQ(Why(kA), MissReason::kEvicted);
  gone_.Remember(stripe->manifest, MissReason::kEvicted);
  gone_.End(stripe->manifest.stripe);
  run_.Remove(stripe->manifest.stripe);
  EXPECT_EQ(Why(kA), MissReason::kEvicted);
  EXPECT_EQ(judge_->WhyNot(*stripe), MissReason::kEvicted);
  gone_.Forget(stripe->manifest);
  EXPECT_EQ(Why(kA), MissReason::kAbsent);
}

}  // namespace
}  // namespace cairn::kv
