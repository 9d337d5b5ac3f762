// The simulated disk keeps its contract, and breaks it exactly as told.
#include "tests/sim/sim_disk.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/status_matchers.h"

namespace cairn::sim {
namespace {

using kv::Bytes;
using kv::Code;
using kv::Status;
using kv::Task;
using testing::HasCode;
using testing::IsOk;

class SimDiskTest : public ::testing::Test {
 protected:
  Bytes Filled(size_t size, uint8_t value) {
    Bytes bytes(size);
    std::memset(bytes.data(), value, size);
    return bytes;
  }
  Status Write(uint64_t offset, uint8_t value, size_t size = kSector) {
    const Bytes bytes = Filled(size, value);
    return clock_.Await(disk_.Write(offset, bytes.span()));
  }
  // The value that all bytes of the range have, or -1 when they differ, or -2 on an error.
  int Value(uint64_t offset, size_t size = kSector) {
    Bytes bytes(size);
    if (!clock_.Await(disk_.Read(offset, bytes.span())).ok()) return -2;
    return Uniform(bytes);
  }
  int PristineValue(uint64_t offset, size_t size = kSector) {
    Bytes bytes(size);
    disk_.ReadPristine(offset, bytes.span());
    return Uniform(bytes);
  }
  static int Uniform(const Bytes& bytes) {
    for (const uint8_t byte : bytes.span()) {
      if (byte != bytes.data()[0]) return -1;
    }
    return bytes.data()[0];
  }
  Status Sync() { return clock_.Await(disk_.Sync()); }

  kv::Loop loop_;
  SimClock clock_{loop_};
  SimDisk disk_{loop_, clock_, {.size = kv::kTiB, .seed = 3}};
};

TEST_F(SimDiskTest, ReadsBackWhatWasWrittenAndZerosElsewhere) {
  EXPECT_THAT(Write(kv::kTiB - 2 * kSector, 9, 2 * kSector), IsOk());
  EXPECT_EQ(Value(kv::kTiB - 2 * kSector, 2 * kSector), 9);
  EXPECT_EQ(Value(512 * kv::kGiB), 0);
  EXPECT_EQ(disk_.media().page_count(), 2u);
}

TEST_F(SimDiskTest, WrittenBytesSurviveTheProcessUnsynced) {
  EXPECT_THAT(Write(0, 1), IsOk());
  disk_.Crash(CrashMode::kProcess);
  EXPECT_EQ(Value(0), -2);
  disk_.Restart();
  EXPECT_EQ(Value(0), 1);
}

TEST_F(SimDiskTest, PowerCutKeepsSyncedSectorsAndDropsSomeOfTheOthers) {
  constexpr size_t kSectors = 64;
  EXPECT_THAT(Write(0, 1, kSectors * kSector), IsOk());
  EXPECT_THAT(Sync(), IsOk());
  EXPECT_THAT(Write(0, 2, kSectors * kSector), IsOk());
  EXPECT_THAT(Write(kv::kMiB, 3, kSectors * kSector), IsOk());
  EXPECT_EQ(disk_.media().unsynced_sector_count(), 2 * kSectors);
  disk_.Crash(CrashMode::kPowerCut);
  disk_.Restart();
  size_t kept = 0;
  for (size_t i = 0; i < kSectors; ++i) {
    const int value = Value(i * kSector);
    EXPECT_TRUE(value == 1 || value == 2) << value;
    if (value == 2) ++kept;
  }
  EXPECT_GT(kept, 0u);
  EXPECT_LT(kept, kSectors);
  EXPECT_EQ(disk_.media().unsynced_sector_count(), 0u);
}

TEST_F(SimDiskTest, SyncCoversOnlyWhatWasWrittenWhenItWasCalled) {
  EXPECT_THAT(Write(0, 1), IsOk());
  const Bytes second = Filled(kSector, 2);
  Task<Status> sync = disk_.Sync();
  Task<Status> write = disk_.Write(0, second.span());
  clock_.RunUntil([&] { return write.done(); });
  ASSERT_FALSE(sync.done());
  clock_.RunUntilIdle();
  EXPECT_THAT(sync.Take(), IsOk());
  EXPECT_EQ(disk_.media().unsynced_sector_count(), 1u);
  disk_.Crash(CrashMode::kPowerCut);
  disk_.Restart();
  EXPECT_GE(Value(0), 1);  // One or two, never what was before the sync.
}

TEST_F(SimDiskTest, CrashEndsWhatIsInFlightAndAnOldViewStaysDead) {
  const std::unique_ptr<kv::Disk> before = disk_.Open();
  const Bytes bytes = Filled(kSector, 5);
  Bytes into(kSector);
  Task<Status> write = before->Write(0, bytes.span());
  Task<Status> read = before->Read(0, into.span());
  Task<Status> sync = before->Sync();
  disk_.Crash(CrashMode::kProcess);
  loop_.RunReady();
  EXPECT_THAT(write.Take(), HasCode(Code::kUnavailable));
  EXPECT_THAT(read.Take(), HasCode(Code::kUnavailable));
  EXPECT_THAT(sync.Take(), HasCode(Code::kUnavailable));
  disk_.Restart();
  EXPECT_THAT(clock_.Await(before->Write(0, bytes.span())), HasCode(Code::kUnavailable));
  const std::unique_ptr<kv::Disk> after = disk_.Open();
  EXPECT_THAT(clock_.Await(after->Write(0, bytes.span())), IsOk());
}

TEST_F(SimDiskTest, EachTripDoesWhatItsNameSays) {
  constexpr size_t kSize = 64 * kSector;
  const uint64_t at = 16 * kv::kMiB;
  EXPECT_THAT(Write(at, 1, kSize), IsOk());

  disk_.TripWrite(1, Trip::kFull);
  EXPECT_THAT(Write(at, 2, kSize), HasCode(Code::kNoSpace));
  EXPECT_EQ(Value(at, kSize), 1);

  disk_.TripWrite(2, Trip::kLost);
  EXPECT_THAT(Write(at, 3, kSize), IsOk());
  EXPECT_EQ(Value(at, kSize), 3);
  EXPECT_THAT(Write(at, 4, kSize), IsOk());
  EXPECT_EQ(Value(at, kSize), 3);
  EXPECT_EQ(PristineValue(at, kSize), 4);

  disk_.TripWrite(1, Trip::kTorn);
  EXPECT_THAT(Write(at, 5, kSize), IsOk());
  EXPECT_EQ(Value(at, kSize), -1);
  EXPECT_EQ(PristineValue(at, kSize), 5);

  disk_.TripWrite(1, Trip::kBitFlip);
  EXPECT_THAT(Write(at, 6, kSize), IsOk());
  EXPECT_EQ(Value(at, kSize), -1);
  EXPECT_EQ(PristineValue(at, kSize), 6);

  EXPECT_THAT(Write(at, 7, kSector), IsOk());
  disk_.TripWrite(1, Trip::kMisdirected);
  EXPECT_THAT(Write(at, 8, kSector), IsOk());
  EXPECT_EQ(Value(at), 7);
  EXPECT_EQ(PristineValue(at), 8);

  disk_.TripWrite(1, Trip::kError);
  EXPECT_THAT(Write(at, 9, kSector), HasCode(Code::kUnavailable));
  disk_.TripRead(1, Trip::kError);
  EXPECT_EQ(Value(at), -2);
  disk_.TripSync(1, Trip::kError);
  EXPECT_THAT(Sync(), HasCode(Code::kUnavailable));
}

TEST_F(SimDiskTest, DamageStaysUntilTheSectorIsWrittenAgain) {
  EXPECT_THAT(Write(0, 7, 2 * kSector), IsOk());
  disk_.FlipBit(100, 3);
  EXPECT_EQ(Value(0), -1);
  EXPECT_EQ(PristineValue(0), 7);
  EXPECT_EQ(Value(kSector), 7);
  EXPECT_THAT(Write(0, 8), IsOk());
  EXPECT_EQ(Value(0), 8);
  disk_.Corrupt(10, 1);
  EXPECT_EQ(Value(0), -1);
  disk_.Wipe();
  EXPECT_EQ(Value(0, 2 * kSector), 0);
}

TEST_F(SimDiskTest, CrashesAtEveryWriteOfAWorkload) {
  for (uint64_t n = 1; n <= 5; ++n) {
    int crashes = 0;
    disk_.SetOnCrash([&crashes] { ++crashes; });
    disk_.TripWrite(n, n % 2 == 0 ? Trip::kCrash : Trip::kPowerCut);
    uint64_t done = 0;
    for (uint8_t i = 1; i <= 5 && Write(i * kSector, i).ok(); ++i) ++done;
    EXPECT_EQ(done, n - 1);
    EXPECT_EQ(crashes, 1);
    EXPECT_TRUE(disk_.down());
    disk_.Restart();
  }
}

TEST_F(SimDiskTest, AFaultyDiskMeetsFaults) {
  disk_.SetFaults({.read_error = 300'000, .write_error = 300'000, .slow = 300'000});
  int failed = 0;
  for (int i = 0; i < 50; ++i) {
    if (!Write(0, 1).ok()) ++failed;
    if (Value(0) < 0) ++failed;
  }
  EXPECT_GT(failed, 10);
  EXPECT_LT(failed, 90);
  disk_.SetFaults({});
  EXPECT_THAT(Write(0, 1), IsOk());
}

TEST_F(SimDiskTest, AFullDiskStillReads) {
  EXPECT_THAT(Write(0, 1), IsOk());
  disk_.SetFull(true);
  EXPECT_THAT(Write(0, 2), HasCode(Code::kNoSpace));
  EXPECT_EQ(Value(0), 1);
  disk_.SetFull(false);
  EXPECT_THAT(Write(0, 2), IsOk());
}

}  // namespace
}  // namespace cairn::sim
