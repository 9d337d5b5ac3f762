// What counts as late, and whom it is expected of.
#include "kvstore/client/read_pace.h"

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
  ReadPace pace;
  Instant now{1'000'000'000};
};

TEST(ReadPace, SaysNothingBeforeItKnows) {
  Reads reads({.late_min = Millis(1)});
  reads.Run(1, 31, Millis(5));
  EXPECT_EQ(reads.pace.LateAfter(kSize), ReadPace::kUnknown);
  EXPECT_FALSE(reads.pace.IsTardy(TargetId{1}, kSize, reads.now));
  reads.Run(1, 1, Millis(5));
  EXPECT_NE(reads.pace.LateAfter(kSize), ReadPace::kUnknown);
  EXPECT_EQ(reads.pace.LateAfter(16 * kSize), ReadPace::kUnknown);  // Other sizes are other reads.
}

TEST(ReadPace, LateIsSlightlyAboveWhatNearlyAllReadsTake) {
  Reads reads({.late_min = Millis(1)});
  for (uint64_t target = 1; target <= 4; ++target) {
    reads.Run(target, 96, Millis(5));
    reads.Run(target, 4, Millis(50));
  }
  EXPECT_GE(reads.pace.LateAfter(kSize), Millis(5));
  EXPECT_LE(reads.pace.LateAfter(kSize), Micros(7'700));
}

TEST(ReadPace, NothingIsLateSoonerThanTheFloor) {
  Reads reads({.late_min = Millis(3)});
  reads.Run(1, 100, Micros(80));
  EXPECT_EQ(reads.pace.LateAfter(kSize), Millis(3));
}

TEST(ReadPace, AFewSlowTargetsDoNotMakeSlownessOrdinary) {
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

TEST(ReadPace, ATargetThatRecoversIsTrustedAgain) {
  Reads reads({.late_min = Millis(1)});
  for (uint64_t target = 1; target <= 3; ++target) reads.Run(target, 200, Millis(2));
  reads.Run(1, 200, Millis(80));
  EXPECT_TRUE(reads.pace.IsTardy(TargetId{1}, kSize, reads.now));
  reads.Run(1, 2'000, Millis(2));
  EXPECT_FALSE(reads.pace.IsTardy(TargetId{1}, kSize, reads.now));
}

TEST(ReadPace, ATargetThatStallsIsTardyWhileItDoes) {
  Reads reads({.late_min = Millis(1)});
  for (uint64_t target = 1; target <= 3; ++target) reads.Run(target, 100, Millis(2));
  reads.pace.Begin(TargetId{2}, reads.now);
  EXPECT_FALSE(reads.pace.IsTardy(TargetId{2}, kSize, reads.now + Millis(2)));
  EXPECT_TRUE(reads.pace.IsTardy(TargetId{2}, kSize, reads.now + Millis(10)));
  EXPECT_FALSE(reads.pace.IsTardy(TargetId{3}, kSize, reads.now + Millis(10)));
  reads.pace.End(TargetId{2}, kSize, Millis(10), reads.now + Millis(10));
  EXPECT_FALSE(reads.pace.IsTardy(TargetId{2}, kSize, reads.now + Millis(20)));
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
