// What counts as late, and whom it is expected of.
#include "kvstore/client/pace.h"

#include <gtest/gtest.h>

namespace cairn::kv {
namespace {

constexpr uint64_t kSize = 200'000;

// Reads one after another, on a clock of its own.
class Reads {
 public:
  explicit Reads(PaceOptions options) : pace(options) {}
  void Run(uint64_t target, int count, Nanos took, uint64_t bytes = kSize) {
    for (int i = 0; i < count; ++i) {
      pace.Begin(TargetId{target}, now);
      now = now + took;
      pace.End(TargetId{target}, bytes, took, now);
    }
  }
  Pace pace;
  Instant now{1'000'000'000};
};

TEST(Pace, SaysNothingBeforeItKnows) {
  Reads reads({.late_min = Millis(1)});
  reads.Run(1, 31, Millis(5));
  EXPECT_EQ(reads.pace.LateAfter(kSize), Pace::kUnknown);
  EXPECT_FALSE(reads.pace.IsTardy(TargetId{1}, kSize, reads.now));
  reads.Run(1, 1, Millis(5));
  EXPECT_NE(reads.pace.LateAfter(kSize), Pace::kUnknown);
  EXPECT_EQ(reads.pace.LateAfter(16 * kSize), Pace::kUnknown);  // Other sizes are other reads.
}

TEST(Pace, LateIsSlightlyAboveWhatNearlyAllReadsTake) {
  Reads reads({.late_min = Millis(1)});
  for (uint64_t target = 1; target <= 4; ++target) {
    reads.Run(target, 96, Millis(5));
    reads.Run(target, 4, Millis(50));
  }
  EXPECT_GE(reads.pace.LateAfter(kSize), Millis(5));
  EXPECT_LE(reads.pace.LateAfter(kSize), Micros(7'700));
}

TEST(Pace, NamesTheSlowOnesOfThoseThatWereAskedLately) {
  Reads reads({.late_min = Millis(1)});
  EXPECT_EQ(reads.pace.Seen(reads.now), std::nullopt);
  for (int round = 0; round < 4; ++round) {
    for (uint64_t target = 1; target <= 5; ++target) {
      reads.Run(target, 20, target == 4 ? Millis(100) : Millis(2));
    }
  }
  EXPECT_EQ(reads.pace.Seen(reads.now), (PaceSeen<TargetId>{5, {TargetId{4}}}));
  reads.now = reads.now + Seconds(61);
  EXPECT_EQ(reads.pace.Seen(reads.now), std::nullopt);
  reads.Run(5, 1, Millis(2));
  EXPECT_EQ(reads.pace.Seen(reads.now), (PaceSeen<TargetId>{1, {}}));
}

TEST(Pace, NothingIsLateSoonerThanTheFloor) {
  Reads reads({.late_min = Millis(3)});
  reads.Run(1, 100, Micros(80));
  EXPECT_EQ(reads.pace.LateAfter(kSize), Millis(3));
}

TEST(Pace, AFewSlowTargetsDoNotMakeSlownessOrdinary) {
  Reads reads({.late_min = Millis(1)});
  for (int round = 0; round < 4; ++round) {
    for (uint64_t target = 1; target <= 5; ++target) {
      reads.Run(target, 20, target <= 2 ? Millis(100) : Millis(2));
    }
  }
  EXPECT_LE(reads.pace.LateAfter(kSize), Millis(4));
  for (uint64_t target = 1; target <= 5; ++target) {
    EXPECT_EQ(reads.pace.IsTardy(TargetId{target}, kSize, reads.now), target <= 2) << target;
  }
}

TEST(Pace, ATargetThatRecoversIsTrustedAgain) {
  Reads reads({.late_min = Millis(1)});
  for (uint64_t target = 1; target <= 3; ++target) reads.Run(target, 200, Millis(2));
  reads.Run(1, 200, Millis(80));
  EXPECT_TRUE(reads.pace.IsTardy(TargetId{1}, kSize, reads.now));
  reads.Run(1, 2'000, Millis(2));
  EXPECT_FALSE(reads.pace.IsTardy(TargetId{1}, kSize, reads.now));
}

TEST(Pace, ATargetThatStallsIsTardyWhileItDoes) {
  Reads reads({.late_min = Millis(1)});
  for (uint64_t target = 1; target <= 3; ++target) reads.Run(target, 100, Millis(2));
  reads.pace.Begin(TargetId{2}, reads.now);
  EXPECT_FALSE(reads.pace.IsTardy(TargetId{2}, kSize, reads.now + Millis(2)));
  EXPECT_TRUE(reads.pace.IsTardy(TargetId{2}, kSize, reads.now + Millis(10)));
  EXPECT_FALSE(reads.pace.IsTardy(TargetId{3}, kSize, reads.now + Millis(10)));
  reads.pace.End(TargetId{2}, kSize, Millis(10), reads.now + Millis(10));
  EXPECT_FALSE(reads.pace.IsTardy(TargetId{2}, kSize, reads.now + Millis(20)));
}

// A handful of reads of each of twelve targets, the last of them far away.
TEST(Pace, AllTargetsTogetherTellSoonWhatIsLate) {
  Reads reads({.late_min = Millis(1)});
  for (int round = 0; round < 3; ++round) {
    for (uint64_t target = 1; target <= 12; ++target) {
      reads.Run(target, 1, target == 12 ? Millis(100) : Millis(5));
    }
  }
  EXPECT_GE(reads.pace.LateAfter(kSize), Millis(15));
  EXPECT_LE(reads.pace.LateAfter(kSize), Millis(24));
  reads.Run(12, 6, Millis(100));  // And one since the first 32 of all.
  EXPECT_FALSE(reads.pace.IsSlow(TargetId{12}));
  reads.Run(12, 1, Millis(100));
  EXPECT_TRUE(reads.pace.IsSlow(TargetId{12}));
  EXPECT_TRUE(reads.pace.IsTardy(TargetId{12}, 16 * kSize, reads.now));  // Whatever the size.
  EXPECT_FALSE(reads.pace.IsSlow(TargetId{1}));
}

// Reads of targets `first` to 13 in turns; the first three are slow.
void RunInTurns(Reads& reads, uint64_t first) {
  for (int round = 0; round < 100; ++round) {
    for (uint64_t target = first; target <= 13; ++target) {
      reads.Run(target, 1, target <= 3 ? Millis(20) : Micros(900));
    }
  }
}

TEST(Pace, TwoOfTwelveAreFew) {
  Reads reads({.late_min = Millis(1)});
  EXPECT_TRUE(reads.pace.FewAreSlow());
  RunInTurns(reads, 1);
  EXPECT_FALSE(reads.pace.FewAreSlow());
  // Whoever is not asked any more has perhaps left.
  RunInTurns(reads, 2);
  EXPECT_FALSE(reads.pace.FewAreSlow());
  reads.now = reads.now + Seconds(61);
  RunInTurns(reads, 2);
  EXPECT_TRUE(reads.pace.FewAreSlow());
}

// A node that is known to be silent refuses at once, and is slow when it is back.
TEST(Pace, FailuresAreNoSpeed) {
  Reads reads({.late_min = Millis(1)});
  RunInTurns(reads, 1);
  ASSERT_TRUE(reads.pace.IsSlow(TargetId{1}));
  for (int i = 0; i < 100; ++i) {
    reads.pace.Begin(TargetId{1}, reads.now);
    reads.pace.Fail(TargetId{1}, reads.now);
  }
  EXPECT_TRUE(reads.pace.IsSlow(TargetId{1}));
  EXPECT_FALSE(reads.pace.IsTardy(TargetId{5}, kSize, reads.now));
}

TEST(Pace, WhoIsNotAskedAnyMoreSaysNothingOfWhatIsOrdinary) {
  Reads reads({.late_min = Millis(1)});
  for (uint64_t target = 1; target <= 8; ++target) reads.Run(target, 64, Millis(40));
  reads.now = reads.now + Seconds(61);
  for (uint64_t target = 9; target <= 11; ++target) reads.Run(target, 64, Millis(2));
  EXPECT_LE(reads.pace.LateAfter(kSize), Millis(4));
}

TEST(HedgeBudget, GivesAPartOfWhatWasAskedFor) {
  HedgeBudget budget(10);
  EXPECT_FALSE(budget.Spend(1));
  budget.Earn(1'000'000);
  EXPECT_TRUE(budget.Spend(60'000));
  EXPECT_FALSE(budget.Spend(40'001));
  EXPECT_TRUE(budget.Spend(40'000));
  EXPECT_FALSE(budget.Spend(1));
}

TEST(HedgeBudget, DoesNotSaveWithoutEnd) {
  HedgeBudget budget(10);
  for (int i = 0; i < 1'000; ++i) budget.Earn(1'000'000'000);
  EXPECT_FALSE(budget.Spend(33 * 1024 * 1024));
  EXPECT_TRUE(budget.Spend(32 * 1024 * 1024));
}

}  // namespace
}  // namespace cairn::kv
