// The segment log without crashes: append, read, drop, move, free, refusals.
#include "kvstore/segment/segment_log.h"

#include <gtest/gtest.h>

#include "kvstore/base/checksum.h"
#include "kvstore/segment/format.h"
#include "tests/sim/segment_rig.h"
#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using ::cairn::testing::HasCode;
using ::cairn::testing::IsOk;
using sim::SegmentRig;

class SegmentLogTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_THAT(rig.Start(), IsOk()); }
  void TearDown() override {
    if (!rig.running()) return;
    EXPECT_THAT(rig.Stop(), IsOk());
  }
  // Appends shards of 1 MiB until the target refuses.
  std::vector<SegmentRig::Shard> Fill() {
    std::vector<SegmentRig::Shard> shards;
    while (true) {
      SegmentRig::Shard shard = rig.Make(255);
      const Status status = rig.AppendNow(shard);
      if (!status.ok()) {
        EXPECT_THAT(status, HasCode(Code::kNoSpace));
        return shards;
      }
      shards.push_back(std::move(shard));
    }
  }
  SegmentRig rig{{.seed = 3}};
};

TEST_F(SegmentLogTest, ReadsBackWhatWasAppended) {
  std::vector<SegmentRig::Shard> shards;
  for (uint32_t sectors = 1; sectors < 40; ++sectors) {
    shards.push_back(rig.Make(sectors));
    ASSERT_THAT(rig.AppendNow(shards.back()), IsOk());
  }
  for (const SegmentRig::Shard& shard : shards) {
    EXPECT_TRUE(rig.Holds(shard));
    EXPECT_EQ(rig.log().Find(shard.manifest.stripe), shard.index);
  }
  EXPECT_EQ(rig.log().stats().shards, shards.size());
}

TEST_F(SegmentLogTest, ReadsRangesAndChecksThem) {
  const SegmentRig::Shard shard = rig.Make(8);
  ASSERT_THAT(rig.AppendNow(shard), IsOk());
  Bytes into(2 * kSectorSize);
  const ByteSpan expected = ByteSpan(shard.payload).subspan(3 * kSectorSize, 5000);
  SegmentLog::Range range{.stripe = shard.manifest.stripe, .index = shard.index,
                          .offset = 3 * kSectorSize, .into = into.span(),
                          .checksum = Checksum(expected), .checked_size = 5000};
  ASSERT_THAT(rig.Await(rig.log().Read(range)), IsOk());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), into.data()));
  range.checksum = *range.checksum + 1;
  EXPECT_THAT(rig.Await(rig.log().Read(range)), HasCode(Code::kCorrupt));
  EXPECT_EQ(rig.log().stats().corrupt_reads, 1u);
  range.offset = 7 * kSectorSize;
  EXPECT_THAT(rig.Await(rig.log().Read(range)), HasCode(Code::kInvalid));
  range.index = {static_cast<uint8_t>(1 - shard.index.value)};
  EXPECT_THAT(rig.Await(rig.log().Read(range)), HasCode(Code::kNotFound));
}

TEST_F(SegmentLogTest, AppendingTwiceWritesOnce) {
  const SegmentRig::Shard shard = rig.Make(4);
  ASSERT_THAT(rig.AppendNow(shard), IsOk());
  const uint64_t written = rig.log().stats().bytes_appended;
  EXPECT_THAT(rig.AppendNow(shard), IsOk());
  EXPECT_EQ(rig.log().stats().bytes_appended, written);
}

TEST_F(SegmentLogTest, DamagedPayloadAndHeaderAreCorruptNotWrong) {
  const SegmentRig::Shard shard = rig.Make(16);
  ASSERT_THAT(rig.AppendNow(shard), IsOk());
  // The only record: its header is the second sector of the first segment.
  rig.disk().FlipBit(kSegmentsOffset + 4 * kSectorSize, 3);
  Bytes into(shard.payload.size());
  EXPECT_THAT(rig.Await(rig.log().ReadVerified(shard.manifest.stripe, shard.index, into.span())),
              HasCode(Code::kCorrupt));
  rig.disk().FlipBit(kSegmentsOffset + 4 * kSectorSize, 3);
  EXPECT_TRUE(rig.Holds(shard));
  rig.disk().FlipBit(kSegmentsOffset + kSectorSize + 80, 1);
  EXPECT_THAT(rig.Await(rig.log().ReadVerified(shard.manifest.stripe, shard.index, into.span())),
              HasCode(Code::kCorrupt));
}

TEST_F(SegmentLogTest, FullTargetRefusesAndFreedSegmentsTakeAgain) {
  std::vector<SegmentRig::Shard> shards = Fill();
  EXPECT_GE(shards.size(), 7u * 3);  // One segment of eight is kept for moves.
  for (const SegmentRig::Shard& shard : shards) EXPECT_TRUE(rig.Holds(shard));

  SegmentInfo victim;
  for (const SegmentInfo& info : rig.log().segments()) {
    if (info.state == SegmentInfo::State::kSealed) victim = info;
  }
  EXPECT_THAT(rig.Await(rig.log().Free(victim.id)), HasCode(Code::kInvalid));  // Live.
  const std::vector<StripeId> dropped = rig.log().StripesIn(victim.id);
  for (const StripeId stripe : dropped) ASSERT_THAT(rig.Await(rig.log().Drop(stripe)), IsOk());
  ASSERT_THAT(rig.Await(rig.log().Free(victim.id)), IsOk());
  EXPECT_THAT(rig.AppendNow(rig.Make(255)), IsOk());
  size_t held = 0;
  for (const SegmentRig::Shard& shard : shards) held += rig.Holds(shard) ? 1 : 0;
  EXPECT_EQ(held, shards.size() - dropped.size());
}

TEST_F(SegmentLogTest, MoveWorksInAFullTargetAndKeepsTheBytes) {
  const std::vector<SegmentRig::Shard> shards = Fill();
  const SegmentRig::Shard& moved = shards.front();
  ASSERT_THAT(rig.Await(rig.log().Move(moved.manifest.stripe)), IsOk());
  EXPECT_TRUE(rig.Holds(moved));
  EXPECT_GT(rig.log().stats().bytes_moved, moved.payload.size());
  EXPECT_THAT(rig.Await(rig.log().Move(rig.Make(1).manifest.stripe)), HasCode(Code::kNotFound));
}

TEST_F(SegmentLogTest, FreeWaitsForReaders) {
  const std::vector<SegmentRig::Shard> shards = Fill();
  const SegmentRig::Shard& shard = shards.front();
  Bytes into(shard.payload.size());
  Task<Status> read =
      rig.log().ReadVerified(shard.manifest.stripe, shard.index, into.span());
  const SegmentId first{0};
  for (const StripeId stripe : rig.log().StripesIn(first)) {
    ASSERT_THAT(rig.Await(rig.log().Drop(stripe)), IsOk());
  }
  EXPECT_FALSE(read.done());
  Task<Status> freed = rig.log().Free(first);
  EXPECT_THAT(rig.Await(std::move(freed)), IsOk());
  ASSERT_TRUE(read.done());
  EXPECT_THAT(read.Take(), IsOk());
  EXPECT_TRUE(std::equal(shard.payload.begin(), shard.payload.end(), into.data()));
}

TEST_F(SegmentLogTest, NeighboursExpireTogether) {
  SegmentRig big({.seed = 4, .segment_size = 4 * kMiB, .segments = 80});
  ASSERT_THAT(big.Start(), IsOk());
  for (int i = 0; i < 30; ++i) {
    ASSERT_THAT(big.AppendNow(big.Make(4, Seconds(i % 2 == 0 ? 30 : 5 * 24 * 3600))), IsOk());
  }
  std::vector<SegmentInfo> used;
  for (const SegmentInfo& info : big.log().segments()) {
    if (info.used_bytes > 0) used.push_back(info);
  }
  ASSERT_EQ(used.size(), 2u);
  EXPECT_GT(std::abs(used[0].expires_at.value - used[1].expires_at.value), 24 * 3600 * 1000);
  EXPECT_THAT(big.Stop(), IsOk());
}

TEST_F(SegmentLogTest, RestartRemembersAndContinuesTheOpenSegment) {
  const SegmentRig::Shard before = rig.Make(10);
  ASSERT_THAT(rig.AppendNow(before), IsOk());
  const TargetId id = rig.log().id();
  ASSERT_THAT(rig.Stop(), IsOk());
  ASSERT_THAT(rig.Start(), IsOk());
  EXPECT_EQ(rig.log().id(), id);
  EXPECT_EQ(rig.log().stats().records_recovered, 0u);
  const SegmentRig::Shard after = rig.Make(10);
  ASSERT_THAT(rig.AppendNow(after), IsOk());
  EXPECT_TRUE(rig.Holds(before));
  EXPECT_TRUE(rig.Holds(after));
  size_t used = 0;
  for (const SegmentInfo& info : rig.log().segments()) used += info.used_bytes > 0 ? 1 : 0;
  EXPECT_EQ(used, 1u);
}

TEST_F(SegmentLogTest, LostMetadataCostsAScanAndNoData) {
  const std::vector<SegmentRig::Shard> shards = Fill();
  ASSERT_THAT(rig.Stop(), IsOk());
  rig.metadata().Wipe();
  ASSERT_THAT(rig.Start(), IsOk());
  EXPECT_EQ(rig.log().stats().records_recovered, shards.size());
  const std::vector<StripeId> recovered = rig.log().TakeRecovered();
  EXPECT_EQ(recovered.size(), shards.size());
  for (const StripeId& stripe : recovered) {
    const auto manifest = rig.Await(rig.log().ReadManifest(stripe));
    ASSERT_THAT(manifest, IsOk());
    EXPECT_EQ(manifest.value().stripe, stripe);
  }
  for (const SegmentRig::Shard& shard : shards) EXPECT_TRUE(rig.Holds(shard));
  size_t visited = 0;
  const auto visit = [&](const Manifest&, ShardIndex) { ++visited; };
  EXPECT_THAT(rig.Await(rig.log().VisitManifests(visit)), IsOk());
  EXPECT_EQ(visited, shards.size());
}

// Records that cross the windows of a scan, that are larger than one, and what lies between them.
TEST_F(SegmentLogTest, AScanFindsRecordsOfEverySizeAndStepsOverDamage) {
  SegmentRig big({.seed = 5, .segment_size = 16 * kMiB, .segments = 8});
  ASSERT_THAT(big.Start(), IsOk());
  std::vector<SegmentRig::Shard> shards;
  for (const uint32_t sectors : {1u, 255u, 300u, 1u, 600u, 510u, 255u, 255u, 255u, 3u}) {
    shards.push_back(big.Make(sectors));
    ASSERT_THAT(big.AppendNow(shards.back()), IsOk());
  }
  ASSERT_THAT(big.Stop(), IsOk());
  // A bit of the sixth record, which begins after its own header sector and those before it.
  const uint64_t sixth = 64 * kKiB + kSectorSize * (1 + 2 + 256 + 301 + 2 + 601);
  big.disk().FlipBit(sixth + 100 * kSectorSize, 3);
  big.metadata().Wipe();
  ASSERT_THAT(big.Start(), IsOk());
  EXPECT_EQ(big.log().stats().records_recovered, shards.size() - 1);
  for (size_t i = 0; i < shards.size(); ++i) EXPECT_EQ(big.Holds(shards[i]), i != 5) << i;
}

TEST_F(SegmentLogTest, SuperblockSurvivesOneDamagedCopyAndRefusesTwo) {
  const SegmentRig::Shard shard = rig.Make(5);
  ASSERT_THAT(rig.AppendNow(shard), IsOk());
  ASSERT_THAT(rig.Stop(), IsOk());
  for (uint32_t byte = 0; byte < 40; ++byte) {
    rig.disk().FlipBit(byte, byte % 8);
    ASSERT_THAT(rig.Start(), IsOk()) << byte;
    EXPECT_TRUE(rig.Holds(shard));
    ASSERT_THAT(rig.Stop(), IsOk());
    rig.disk().FlipBit(byte, byte % 8);
  }
  rig.disk().FlipBit(20, 0);
  rig.disk().FlipBit(kSuperblockOffsets[1] + 20, 0);
  const uint64_t written = rig.disk().writes();
  EXPECT_THAT(rig.Start(), HasCode(Code::kCorrupt));
  EXPECT_EQ(rig.disk().writes(), written);
}

TEST_F(SegmentLogTest, AnotherVersionIsRefusedAndLeftAlone) {
  ASSERT_THAT(rig.Stop(), IsOk());
  Bytes sector(kSectorSize);
  rig.disk().ReadPristine(0, sector.sectors());
  sector.data()[8] = 2;
  // As version 2 would write it: the seal is where it always is.
  const uint64_t seal = Checksum(sector.span().first(32));
  std::memcpy(sector.data() + 32, &seal, sizeof(seal));
  for (const uint64_t offset : kSuperblockOffsets) {
    ASSERT_THAT(rig.Await(rig.disk().Write(offset, sector.sectors())), IsOk());
  }
  const uint64_t written = rig.disk().writes();
  const Status status = rig.Start();
  EXPECT_THAT(status, HasCode(Code::kConflict));
  EXPECT_NE(status.message().find("version 2"), std::string::npos);
  EXPECT_EQ(rig.disk().writes(), written);
}

TEST(SegmentLogMetadata, WhatWaitsForMetadataThatTakesNoWritesIsBounded) {
  SegmentRig rig({.seed = 3, .segments = 40});
  ASSERT_THAT(rig.Start(), IsOk());
  rig.metadata().SetDown(true);
  SegmentRig::Shard shard = rig.Make(1);
  size_t appended = 0;
  Status status;
  while (status.ok() && appended < 40'000) {
    shard.manifest.stripe.low = ++appended;
    status = rig.AppendNow(shard);
    (void)rig.Await(rig.log().Drop(shard.manifest.stripe));
  }
  EXPECT_THAT(status, HasCode(Code::kUnavailable));
  EXPECT_GT(appended, 10'000u);
  rig.metadata().SetDown(false);
  ASSERT_THAT(rig.Await(rig.log().Sync()), IsOk());
  EXPECT_THAT(rig.AppendNow(shard), IsOk());
  EXPECT_THAT(rig.Stop(), IsOk());
}

}  // namespace
}  // namespace cairn::kv
