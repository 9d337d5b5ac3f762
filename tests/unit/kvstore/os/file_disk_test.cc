// Real files on both engines: bytes, locks, sizes, and every way in which opening goes wrong.
#include "kvstore/os/file_disk.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "kvstore/base/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/kvstore/os/os_fixture.h"

namespace cairn::kv {
namespace {

using ::testing::HasSubstr;
using testing::HasCode;
using testing::IsOk;

class FileDiskTest : public OsTest {
 protected:
  Result<std::unique_ptr<FileDisk>> Open(const std::string& name, uint64_t size) {
    const FileDiskOptions options{.path = folder_.File(name), .size = size};
    return FileDisk::Open(*poller_, log_, options);
  }
  static Bytes RandomBytes(Random& random, size_t size) {
    Bytes bytes(size);
    random.Fill(bytes.span());
    return bytes;
  }
  Bytes Read(Disk& disk, uint64_t offset, size_t size) {
    Bytes bytes(size);
    EXPECT_THAT(poller_->Await(disk.Read(offset, bytes.span())), IsOk());
    return bytes;
  }
  static bool Same(ByteSpan a, ByteSpan b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
  }

  testing::TemporaryFolder folder_;
};
KV_ON_BOTH_ENGINES(FileDiskTest);

TEST_P(FileDiskTest, ReadsBackEverySizeAfterReopening) {
  Random random(1);
  std::vector<std::pair<uint64_t, Bytes>> written;
  {
    auto disk = Open("disk", 16 * kMiB);
    ASSERT_THAT(disk, IsOk());
    EXPECT_EQ(disk.value()->size(), 16 * kMiB);
    EXPECT_EQ(std::filesystem::file_size(folder_.File("disk")), 16 * kMiB);
    uint64_t offset = 0;
    for (const size_t size : {4096u, 8192u, 65536u, 1u << 20, 3u << 20}) {
      written.emplace_back(offset, RandomBytes(random, size));
      const ByteSpan bytes = std::as_const(written.back().second).span();
      EXPECT_THAT(poller_->Await(disk.value()->Write(offset, bytes)), IsOk());
      offset += size;
    }
    EXPECT_THAT(poller_->Await(disk.value()->Sync()), IsOk());
  }
  auto disk = Open("disk", 0);
  ASSERT_THAT(disk, IsOk());
  EXPECT_EQ(disk.value()->size(), 16 * kMiB);
  for (const auto& [offset, bytes] : written) {
    EXPECT_TRUE(Same(Read(*disk.value(), offset, bytes.size()).span(), bytes.span())) << offset;
  }
  const Bytes untouched = Read(*disk.value(), 15 * kMiB, 4096);
  EXPECT_TRUE(Same(untouched.span(), Bytes(4096).span()));
}

TEST_P(FileDiskTest, ManyOperationsAtOnceKeepApart) {
  constexpr uint64_t kCount = 3000;  // More than the ring has entries.
  auto opened = Open("disk", kCount * kSectorSize);
  ASSERT_THAT(opened, IsOk());
  Disk& disk = *opened.value();
  Random random(2);
  const Bytes all = RandomBytes(random, kCount * kSectorSize);
  std::vector<Task<Status>> tasks;
  for (uint64_t i = 0; i < kCount; ++i) {
    const uint64_t at = i * kSectorSize;
    tasks.push_back(disk.Write(at, all.span().subspan(at, kSectorSize)));
  }
  for (Task<Status>& task : tasks) EXPECT_THAT(poller_->Await(std::move(task)), IsOk());
  tasks.clear();
  Bytes back(all.size());
  for (uint64_t i = kCount; i-- > 0;) {
    const uint64_t at = i * kSectorSize;
    tasks.push_back(disk.Read(at, back.span().subspan(at, kSectorSize)));
  }
  for (Task<Status>& task : tasks) EXPECT_THAT(poller_->Await(std::move(task)), IsOk());
  EXPECT_TRUE(Same(back.span(), all.span()));
}

TEST_P(FileDiskTest, ASecondUserIsTurnedAwayUntilTheFirstIsGone) {
  auto first = Open("disk", kMiB);
  ASSERT_THAT(first, IsOk());
  const auto second = Open("disk", kMiB);
  EXPECT_THAT(second, HasCode(Code::kConflict));
  EXPECT_THAT(second.status().message(), HasSubstr(folder_.File("disk") + ": is in use"));
  std::move(first).value().reset();
  EXPECT_THAT(Open("disk", kMiB), IsOk());
}

TEST_P(FileDiskTest, GrowsAFileAndNeverCutsOne) {
  ASSERT_THAT(Open("disk", kMiB), IsOk());
  {
    const auto grown = Open("disk", 2 * kMiB);
    ASSERT_THAT(grown, IsOk());
    EXPECT_EQ(grown.value()->size(), 2 * kMiB);
  }
  EXPECT_THAT(Open("disk", kMiB), HasCode(Code::kConflict));
  EXPECT_EQ(std::filesystem::file_size(folder_.File("disk")), 2 * kMiB);
}

TEST_P(FileDiskTest, SaysWhyAFileCannotBeOpened) {
  EXPECT_THAT(Open("", kMiB), HasCode(Code::kInvalid));  // The folder itself.
  const auto orphan = Open("missing/disk", kMiB);
  EXPECT_THAT(orphan, HasCode(Code::kInvalid));
  EXPECT_THAT(orphan.status().message(), HasSubstr("folder does not exist"));
  const FileDiskOptions must_exist{
      .path = folder_.File("disk"), .size = 0, .missing = FileDiskOptions::Missing::kFail};
  EXPECT_THAT(FileDisk::Open(*poller_, log_, must_exist), HasCode(Code::kNotFound));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("disk")));
  std::ofstream(folder_.File("odd")) << "not a sector";
  EXPECT_THAT(Open("odd", 0), HasCode(Code::kInvalid));
  const FileDiskOptions device{.path = "/dev/null", .size = kMiB};
  EXPECT_THAT(FileDisk::Open(*poller_, log_, device), HasCode(Code::kInvalid));
}

TEST_P(FileDiskTest, AFileSystemWithoutRoomLeavesNothingBehind) {
  const auto space = std::filesystem::space(folder_.path());
  const auto opened = Open("disk", AlignUp(space.free + kTiB, kSectorSize));
  EXPECT_THAT(opened, HasCode(Code::kNoSpace));
  EXPECT_THAT(opened.status().message(), HasSubstr(folder_.File("disk")));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("disk")));
}

TEST_P(FileDiskTest, AWriteThatTheSystemHasNoRoomForIsNoSpace) {
  auto disk = Open("disk", 4 * kMiB);
  ASSERT_THAT(disk, IsOk());
  // A limit on file sizes stands for a full disk. Restored before anything else writes.
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = 2 * kMiB;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Bytes bytes(kMiB);
  const Status beyond = poller_->Await(disk.value()->Write(3 * kMiB, bytes.span()));
  const Status within = poller_->Await(disk.value()->Write(0, bytes.span()));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(beyond, HasCode(Code::kNoSpace));
  EXPECT_THAT(within, IsOk());
}

TEST_P(FileDiskTest, AFileThatWasCutBehindItsBackIsAnError) {
  auto disk = Open("disk", kMiB);
  ASSERT_THAT(disk, IsOk());
  ASSERT_EQ(truncate(folder_.File("disk").c_str(), kMiB / 2), 0);
  Bytes bytes(kMiB);
  EXPECT_THAT(poller_->Await(disk.value()->Read(0, bytes.span())), HasCode(Code::kUnavailable));
  EXPECT_THAT(poller_->Await(disk.value()->Read(0, bytes.span().first(kMiB / 2))), IsOk());
}

using FileDiskDeathTest = FileDiskTest;
INSTANTIATE_TEST_SUITE_P(Engine, FileDiskDeathTest, ::testing::Values(PollerEngine::kAuto),
                         EngineName);

TEST_P(FileDiskDeathTest, UnalignedUseIsOurOwnMistake) {
  auto disk = Open("disk", kMiB);
  ASSERT_THAT(disk, IsOk());
  Bytes bytes(8192);
  EXPECT_DEATH((void)disk.value()->Read(512, bytes.span().first(4096)), "offset % kSectorSize");
  EXPECT_DEATH((void)disk.value()->Read(0, bytes.span().first(100)), "size\\(\\) % kSectorSize");
  EXPECT_DEATH((void)disk.value()->Read(0, bytes.span().subspan(1, 4096)), "data\\(\\)");
  EXPECT_DEATH((void)disk.value()->Read(kMiB, bytes.span().first(4096)), "offset <= size_");
}

}  // namespace
}  // namespace cairn::kv
