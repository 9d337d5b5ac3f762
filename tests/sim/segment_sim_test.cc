// The segment log keeps its promises when anything fails or dies at any point, whoever works on it.
#include <gtest/gtest.h>

#include "tests/sim/segment_world.h"
#include "tests/support/status_matchers.h"

namespace cairn::sim {
namespace {

using kv::Status;
using testing::IsOk;

constexpr uint64_t kSeeds = 200;

struct CrashCase {
  const char* name;
  Trip trip;
  CrashMode mode;
};
constexpr CrashCase kCrashes[] = {{"process", Trip::kCrash, CrashMode::kProcess},
                                  {"power", Trip::kPowerCut, CrashMode::kPowerCut}};

// The n-th write, then the n-th sync, kills the process or the machine, for every n that the work
// reaches. After each restart the oracle holds, work goes on, and it holds after that too.
class SegmentCrashAt : public ::testing::TestWithParam<CrashCase> {
 protected:
  // False when the work ended before the n-th operation.
  static bool CrashAt(uint64_t n, bool at_sync) {
    SegmentWorld world(77, 6);
    EXPECT_THAT(world.Start(), IsOk());
    world.ExpectCrash(GetParam().mode);
    if (at_sync) {
      world.disk().TripSync(n, GetParam().trip);
    } else {
      world.disk().TripWrite(n, GetParam().trip);
    }
    world.Work(3, 40);
    if (!world.down()) return false;
    world.Crash(GetParam().mode);
    EXPECT_THAT(world.Start(), IsOk());
    EXPECT_EQ(world.Check(), "") << "after a crash at operation " << n;
    world.Work(2, 10);
    EXPECT_EQ(world.Check(), "") << "with work after a crash at operation " << n;
    world.Crash(CrashMode::kPowerCut);
    EXPECT_THAT(world.Start(), IsOk());
    EXPECT_EQ(world.Check(), "") << "after the crash that follows one at operation " << n;
    return !HasFailure();
  }
};

TEST_P(SegmentCrashAt, EveryWrite) {
  uint64_t n = 1;
  while (CrashAt(n, false)) ++n;
  EXPECT_GT(n, 60u);
}

TEST_P(SegmentCrashAt, EverySync) {
  uint64_t n = 1;
  while (CrashAt(n, true)) ++n;
  EXPECT_GT(n, 5u);
}

INSTANTIATE_TEST_SUITE_P(, SegmentCrashAt, ::testing::ValuesIn(kCrashes),
                         [](const auto& crash) { return std::string(crash.param.name); });

// Opening is work as well: it may die at each of its own writes and be tried again.
TEST(SegmentSim, OpeningSurvivesACrashAtEachOfItsOwnWrites) {
  for (uint64_t n = 1;; ++n) {
    SegmentWorld world(5);
    world.ExpectCrash(CrashMode::kPowerCut);
    world.disk().TripWrite(n, Trip::kPowerCut);
    const Status started = world.Start();
    if (!world.down()) {
      EXPECT_THAT(started, IsOk());
      EXPECT_GT(n, 1u);
      break;
    }
    world.Crash(CrashMode::kPowerCut);
    ASSERT_THAT(world.Start(), IsOk()) << "after a power cut at write " << n << " of formatting";
    world.Work(2, 10);
    ASSERT_EQ(world.Check(), "");
  }
}

enum class Part { kWrite, kRead, kSync, kMetadata };

uint64_t CountOf(SegmentWorld& world, Part part) {
  switch (part) {
    case Part::kWrite: return world.disk().writes();
    case Part::kRead: return world.disk().reads();
    case Part::kSync: return world.disk().syncs();
    case Part::kMetadata: return world.metadata().writes();
  }
  return 0;
}

void Fail(SegmentWorld& world, uint64_t n, Part part) {
  switch (part) {
    case Part::kWrite: return world.disk().TripWrite(n, Trip::kError);
    case Part::kRead: return world.disk().TripRead(n, Trip::kError);
    case Part::kSync: return world.disk().TripSync(n, Trip::kError);
    case Part::kMetadata: return world.metadata().FailWrite(n);
  }
}

// One that was not met is none for what follows.
void Disarm(SegmentWorld& world) {
  world.disk().TripWrite(0, Trip::kNone);
  world.disk().TripRead(0, Trip::kNone);
  world.disk().TripSync(0, Trip::kNone);
  world.metadata().FailWrite(0);
}

// False when the work ended before the n-th operation.
bool FailAt(uint64_t n, Part part) {
  SegmentWorld world(78, 6);
  EXPECT_THAT(world.Start(), IsOk());
  const uint64_t before = CountOf(world, part);
  Fail(world, n, part);
  world.Work(3, 40);
  const bool met = CountOf(world, part) - before >= n;
  if (!met) Disarm(world);
  EXPECT_EQ(world.Check(), "") << "after a failure of operation " << n;
  world.Crash(CrashMode::kProcess);
  EXPECT_THAT(world.Start(), IsOk());
  EXPECT_EQ(world.Check(), "") << "after a failure of operation " << n << " and a crash";
  return met && !::testing::Test::HasFailure();
}

class SegmentFailAt : public ::testing::TestWithParam<Part> {};

TEST_P(SegmentFailAt, AnyOneOperationFailsAndNothingAcknowledgedIsLost) {
  uint64_t n = 1;
  while (FailAt(n, GetParam())) ++n;
  EXPECT_GT(n, 5u);
}

INSTANTIATE_TEST_SUITE_P(, SegmentFailAt,
                         ::testing::Values(Part::kWrite, Part::kRead, Part::kSync,
                                           Part::kMetadata));

// Work, crash, work, crash, ... with random kinds of crash at random moments.
TEST(SegmentSim, RandomWorkAndCrashes) {
  uint64_t acknowledged = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SegmentWorld world(seed);
    kv::Random& random = world.random();
    for (int life = 0; life < 4; ++life) {
      ASSERT_THAT(world.Start(), IsOk()) << "seed " << seed;
      ASSERT_EQ(world.Check(), "") << "seed " << seed << ", start of life " << life;
      const CrashMode mode = random.Chance(1, 2) ? CrashMode::kProcess : CrashMode::kPowerCut;
      const Trip trip = mode == CrashMode::kProcess ? Trip::kCrash : Trip::kPowerCut;
      world.ExpectCrash(mode);
      const bool trips = random.Chance(3, 4);
      world.disk().TripWrite(trips ? 1 + random.Below(150) : 0, trips ? trip : Trip::kNone);
      const auto users = static_cast<uint32_t>(1 + random.Below(6));
      world.Work(users, 30);
      const std::string wrong = world.down() ? "" : world.Check();
      ASSERT_EQ(wrong, "") << "seed " << seed << ", life " << life;
      if (!world.down() && random.Chance(1, 3)) {
        ASSERT_THAT(world.Stop(), IsOk()) << "seed " << seed;
      } else {
        world.Crash(mode);
      }
    }
    acknowledged += world.acknowledged();
  }
  EXPECT_GT(acknowledged, kSeeds * 50);
}

// In a small target segments are used again and again, and power fails soon after: a header of an
// earlier use must never stand over records of a later one.
TEST(SegmentSim, SegmentsAreReusedThroughPowerCuts) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SegmentWorld world(3000 + seed, 4);
    for (int life = 0; life < 6; ++life) {
      ASSERT_THAT(world.Start(), IsOk()) << "seed " << seed;
      ASSERT_EQ(world.Check(), "") << "seed " << seed << ", start of life " << life;
      world.Work(4, 40);
      ASSERT_EQ(world.Check(), "") << "seed " << seed << ", life " << life;
      // A segment is synced, emptied, freed and opened again, and nothing is synced since.
      ASSERT_THAT(world.ReuseSegments(), IsOk()) << "seed " << seed;
      world.Crash(CrashMode::kPowerCut);
    }
  }
}

// The database is lost whole: the segments alone give everything back that they hold.
TEST(SegmentSim, LosingTheMetadataLosesNothing) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SegmentWorld world(1000 + seed);
    ASSERT_THAT(world.Start(), IsOk());
    world.Work(3, 60);
    ASSERT_EQ(world.Check(), "");
    world.Crash(CrashMode::kProcess);
    world.metadata().Wipe();
    ASSERT_THAT(world.Start(), IsOk());
    ASSERT_EQ(world.CheckAfterRescan(), "") << "seed " << seed;
  }
}

// Bits rot, writes tear, vanish and go astray, untold: an answer may be missing, never wrong.
TEST(SegmentSim, DamageIsNeverServed) {
  uint64_t faults = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SegmentWorld world(2000 + seed);
    ASSERT_THAT(world.Start(), IsOk());
    DiskFaults bad;
    bad.bit_flip = 20'000;
    bad.torn_write = 20'000;
    bad.lost_write = 20'000;
    bad.misdirected_write = 10'000;
    world.disk().SetFaults(bad);
    world.ExpectDamage();
    world.Work(4, 40);
    ASSERT_EQ(world.CheckNothingWrong(), "") << "seed " << seed;
    world.Crash(CrashMode::kProcess);
    world.disk().SetFaults({});
    if (!world.Start().ok()) continue;  // The superblock itself was hit: refused.
    ASSERT_EQ(world.CheckNothingWrong(), "") << "seed " << seed << ", reopened";
    faults += world.disk().faults_met();
  }
  EXPECT_GT(faults, 200u);
}

}  // namespace
}  // namespace cairn::sim
