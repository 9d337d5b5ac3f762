// What Open does with targets that are foreign, damaged, shrunk, or another's.
#include <gtest/gtest.h>

#include "kvstore/segment/format.h"
#include "tests/sim/segment_rig.h"
#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using ::cairn::testing::HasCode;
using ::cairn::testing::IsOk;
using sim::SegmentRig;

// Anything but zeros where a superblock should be, even with zeros where the other should be: an
// ext4 file system looks like that.
TEST(SegmentOpen, AForeignFileIsRefusedAndNotTouched) {
  for (const uint64_t offset : kSuperblockOffsets) {
    SegmentRig rig({});
    Bytes junk(kSectorSize);
    junk.data()[1080] = 0x53;
    ASSERT_THAT(rig.Await(rig.disk().Write(offset, junk.sectors())), IsOk());
    const uint64_t written = rig.disk().writes();
    EXPECT_THAT(rig.Start(), HasCode(Code::kCorrupt)) << "junk at " << offset;
    EXPECT_EQ(rig.disk().writes(), written);
  }
}

// The seal covers the fields; every bit of them is noticed, and with one copy left none matters.
TEST(SegmentOpen, EveryBitOfEitherSuperblockMayFlip) {
  SegmentRig rig({});
  ASSERT_THAT(rig.Start(), IsOk());
  const TargetId id = rig.log().id();
  ASSERT_THAT(rig.Stop(), IsOk());
  for (const uint64_t offset : kSuperblockOffsets) {
    for (uint32_t bit = 0; bit < 40 * 8; ++bit) {
      rig.disk().FlipBit(offset + bit / 8, bit % 8);
      ASSERT_THAT(rig.Start(), IsOk()) << "bit " << bit << " at " << offset;
      EXPECT_EQ(rig.log().id(), id);
      ASSERT_THAT(rig.Stop(), IsOk());
      rig.disk().FlipBit(offset + bit / 8, bit % 8);
    }
  }
}

TEST(SegmentOpen, AShrunkTargetIsRefusedWithBothSizes) {
  SegmentRig rig({.segments = 8});
  ASSERT_THAT(rig.Start(), IsOk());
  ASSERT_THAT(rig.Stop(), IsOk());
  SegmentRig smaller({.segments = 5});
  Bytes sector(kSectorSize);
  rig.disk().ReadPristine(0, sector.span());
  ASSERT_THAT(smaller.Await(smaller.disk().Write(0, sector.sectors())), IsOk());
  const Status status = smaller.Start();
  EXPECT_THAT(status, HasCode(Code::kCorrupt));
  EXPECT_NE(status.message().find(std::to_string(rig.disk().size())), std::string::npos);
  EXPECT_NE(status.message().find(std::to_string(smaller.disk().size())), std::string::npos);
}

TEST(SegmentOpen, ADamagedSegmentHeaderLosesNothingWhileTheMetadataIsThere) {
  SegmentRig rig({});
  ASSERT_THAT(rig.Start(), IsOk());
  const SegmentRig::Shard shard = rig.Make(9);
  ASSERT_THAT(rig.AppendNow(shard), IsOk());
  ASSERT_THAT(rig.Stop(), IsOk());
  for (uint32_t i = 0; i < 8; ++i) rig.disk().Corrupt(kSegmentsOffset + i * 4 * kMiB, 40);
  ASSERT_THAT(rig.Start(), IsOk());
  EXPECT_TRUE(rig.Holds(shard));
  ASSERT_THAT(rig.Stop(), IsOk());
}

// A new disk in the place of an old one, and the old one's database beside it.
TEST(SegmentOpen, MetadataOfAnotherTargetIsVoid) {
  SegmentRig rig({});
  ASSERT_THAT(rig.Start(), IsOk());
  const TargetId old = rig.log().id();
  const SegmentRig::Shard shard = rig.Make(9);
  ASSERT_THAT(rig.AppendNow(shard), IsOk());
  ASSERT_THAT(rig.Stop(), IsOk());
  rig.disk().Wipe();
  ASSERT_THAT(rig.Start(), IsOk());
  EXPECT_NE(rig.log().id(), old);
  EXPECT_EQ(rig.log().Find(shard.manifest.stripe), std::nullopt);
  EXPECT_EQ(rig.log().stats().live_bytes, 0u);
  ASSERT_THAT(rig.AppendNow(shard), IsOk());
  EXPECT_TRUE(rig.Holds(shard));
  ASSERT_THAT(rig.Stop(), IsOk());
}

// A repair appends again what was dropped: the drop must not take the new copy in a crash.
TEST(SegmentOpen, AShardAppendedAgainAfterADropSurvivesACrash) {
  SegmentRig rig({});
  ASSERT_THAT(rig.Start(), IsOk());
  const SegmentRig::Shard shard = rig.Make(9);
  ASSERT_THAT(rig.AppendNow(shard), IsOk());
  ASSERT_THAT(rig.Await(rig.log().Drop(shard.manifest.stripe)), IsOk());
  ASSERT_THAT(rig.AppendNow(shard), IsOk());
  rig.Crash(sim::CrashMode::kProcess);
  ASSERT_THAT(rig.Start(), IsOk());
  EXPECT_TRUE(rig.Holds(shard));
  ASSERT_THAT(rig.Stop(), IsOk());
}

}  // namespace
}  // namespace cairn::kv
