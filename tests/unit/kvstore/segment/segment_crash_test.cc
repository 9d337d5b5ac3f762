// The segment log through crashes: at every n-th write, by power cut, and in long random runs.
#include <gtest/gtest.h>

#include "tests/sim/segment_rig.h"
#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using ::cairn::testing::IsOk;
using sim::CrashMode;
using sim::SegmentRig;
using sim::Trip;

// What a run knows of each shard it made.
struct Known {
  SegmentRig::Shard shard;
  bool acknowledged = false;
  bool synced = false;
  bool dropped = false;
};

// Never wrong bytes; acknowledged ones are there, after a power cut those that were synced.
void Check(SegmentRig& rig, const std::vector<Known>& shards, CrashMode mode, uint64_t at) {
  for (const Known& known : shards) {
    const auto found = rig.Get(known.shard);
    if (found) {
      EXPECT_EQ(*found, known.shard.payload) << "wrong bytes, crash " << at;
    }
    const bool promised =
        !known.dropped && (mode == CrashMode::kProcess ? known.acknowledged : known.synced);
    EXPECT_TRUE(found.has_value() || !promised) << "lost, crash " << at;
  }
}

// Twelve appends in flight together, a sync, some drops, twelve more.
Task<void> Work(SegmentRig& rig, std::vector<Known>& shards) {
  for (int round = 0; round < 3; ++round) {
    std::vector<Task<Status>> appends;
    const size_t first = shards.size();
    for (int i = 0; i < 12; ++i) {
      shards.push_back({rig.Make(static_cast<uint32_t>(1 + rig.random().Below(60)))});
    }
    for (size_t i = first; i < shards.size(); ++i) appends.push_back(rig.Append(shards[i].shard));
    for (size_t i = 0; i < appends.size(); ++i) {
      Task<Status>& append = appends[i];
      const Status status = co_await append;
      shards[first + i].acknowledged = status.ok();
    }
    if (round == 1) continue;
    const Status synced = co_await rig.log().Sync();
    for (Known& known : shards) known.synced = known.synced || (synced.ok() && known.acknowledged);
    shards[first].dropped = true;
    (void)co_await rig.log().Drop(shards[first].shard.manifest.stripe);
  }
}

uint64_t CountWrites() {
  SegmentRig rig({.seed = 9});
  EXPECT_THAT(rig.Start(), IsOk());
  const uint64_t before = rig.disk().writes();
  std::vector<Known> shards;
  rig.Await(Work(rig, shards));
  const uint64_t writes = rig.disk().writes() - before;
  EXPECT_THAT(rig.Stop(), IsOk());
  return writes;
}

class CrashAtEveryWrite : public ::testing::TestWithParam<CrashMode> {};

TEST_P(CrashAtEveryWrite, LosesNothingThatWasPromised) {
  const uint64_t writes = CountWrites();
  ASSERT_GT(writes, 60u);
  for (uint64_t n = 1; n <= writes; ++n) {
    SegmentRig rig({.seed = 9});
    ASSERT_THAT(rig.Start(), IsOk());
    rig.disk().TripWrite(n, GetParam() == CrashMode::kProcess ? Trip::kCrash : Trip::kPowerCut);
    rig.disk().SetOnCrash([&] { rig.metadata().Crash(GetParam()); });
    std::vector<Known> shards;
    rig.Await(Work(rig, shards));
    rig.disk().SetOnCrash({});
    rig.Crash(CrashMode::kProcess);
    ASSERT_THAT(rig.Start(), IsOk()) << n;
    Check(rig, shards, GetParam(), n);
    // And it works on.
    const SegmentRig::Shard more = rig.Make(20);
    ASSERT_THAT(rig.AppendNow(more), IsOk());
    EXPECT_TRUE(rig.Holds(more));
    Check(rig, shards, GetParam(), n);
    ASSERT_THAT(rig.Stop(), IsOk());
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, CrashAtEveryWrite,
                         ::testing::Values(CrashMode::kProcess, CrashMode::kPowerCut));

TEST(SegmentFaults, FailingEachOperationInTurnNeverLosesWhatWasAcknowledged) {
  for (uint64_t n = 1; n < 140; ++n) {
    SegmentRig rig({.seed = 11});
    ASSERT_THAT(rig.Start(), IsOk());
    if (n % 2 == 0) {
      rig.disk().TripWrite(n / 2, Trip::kError);
    } else {
      rig.metadata().FailWrite((n + 1) / 2);
    }
    std::vector<Known> shards;
    rig.Await(Work(rig, shards));
    rig.disk().TripWrite(0, Trip::kNone);  // One that was not met is none for what follows.
    rig.metadata().FailWrite(0);
    Check(rig, shards, CrashMode::kProcess, n);
    rig.Crash(CrashMode::kProcess);
    ASSERT_THAT(rig.Start(), IsOk());
    Check(rig, shards, CrashMode::kProcess, n);
    ASSERT_THAT(rig.Stop(), IsOk());
  }
}

// Frees the fullest segment after dropping all it holds.
void Reclaim(SegmentRig& rig, std::vector<Known>& shards) {
  for (const SegmentInfo& info : rig.log().segments()) {
    if (info.state != SegmentInfo::State::kSealed) continue;
    for (const StripeId stripe : rig.log().StripesIn(info.id)) {
      for (Known& known : shards) {
        known.dropped = known.dropped || known.shard.manifest.stripe == stripe;
      }
      ASSERT_THAT(rig.Await(rig.log().Drop(stripe)), IsOk());
    }
    ASSERT_THAT(rig.Await(rig.log().Free(info.id)), IsOk());
    return;
  }
}

void RandomRun(uint64_t seed) {
  SegmentRig rig({.seed = seed, .segment_size = 4 * kMiB, .segments = 6});
  ASSERT_THAT(rig.Start(), IsOk()) << seed;
  std::vector<Known> shards;
  for (int step = 0; step < 120; ++step) {
    const uint64_t dice = rig.random().Below(20);
    if (dice < 13) {
      Known known{rig.Make(static_cast<uint32_t>(1 + rig.random().Below(300)))};
      const Status status = rig.AppendNow(known.shard);
      known.acknowledged = status.ok();
      if (status.code() == Code::kNoSpace) Reclaim(rig, shards);
      shards.push_back(std::move(known));
    } else if (dice < 15 && !shards.empty()) {
      Known& known = shards[rig.random().Below(shards.size())];
      if (rig.random().Chance(1, 2)) {
        (void)rig.Await(rig.log().Move(known.shard.manifest.stripe));
      } else {
        known.dropped = true;
        ASSERT_THAT(rig.Await(rig.log().Drop(known.shard.manifest.stripe)), IsOk());
      }
    } else if (dice < 17) {
      ASSERT_THAT(rig.Await(rig.log().Sync()), IsOk());
      for (Known& known : shards) known.synced = known.acknowledged;
    } else if (dice == 17) {
      const CrashMode mode =
          rig.random().Chance(1, 2) ? CrashMode::kProcess : CrashMode::kPowerCut;
      rig.Crash(mode);
      if (rig.random().Chance(1, 8)) rig.metadata().Wipe();
      ASSERT_THAT(rig.Start(), IsOk()) << seed;
      Check(rig, shards, mode, seed);
      // What a power cut took is not promised any more; what survived it stays.
      for (Known& known : shards) {
        known.acknowledged = rig.Holds(known.shard);
        if (mode == CrashMode::kPowerCut) known.synced = known.acknowledged;
      }
    }
  }
  Check(rig, shards, CrashMode::kProcess, seed);
  ASSERT_THAT(rig.Stop(), IsOk());
}

TEST(SegmentSimulation, RandomRunsKeepEveryPromise) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    RandomRun(seed);
    if (::testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
}

}  // namespace
}  // namespace cairn::kv
