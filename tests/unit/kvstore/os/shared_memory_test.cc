// Memory of two mappings: what one writes the other sees, until its place is taken by other memory.
#include "kvstore/os/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "kvstore/base/units.h"
#include "kvstore/os/event_fd.h"
#include "kvstore/os/socket_address.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace cairn::kv {
namespace {

using testing::HasCode;
using testing::IsOk;

constexpr uint64_t kPage = kSectorSize;

class SharedMemoryTest : public ::testing::Test {
 protected:
  // The other side's mapping of all there is now.
  std::unique_ptr<SharedMemory> Peer() {
    return SharedMemory::Adopt(dup(memory_->fd()), memory_->file_size()).value();
  }
  uint8_t& At(uint64_t page) { return memory_->span()[page * kPage]; }

  std::unique_ptr<SharedMemory> memory_ = SharedMemory::Create(6 * kPage).value();
};

TEST_F(SharedMemoryTest, BothSidesSeeTheSameBytes) {
  const auto peer = Peer();
  At(1) = 7;
  EXPECT_EQ(peer->span()[kPage], 7);
  peer->span()[5 * kPage + 9] = 8;
  EXPECT_EQ(memory_->span()[5 * kPage + 9], 8);
}

TEST_F(SharedMemoryTest, WhatWasReplacedIsOutOfThePeersReach) {
  const auto peer = Peer();
  for (uint64_t page = 0; page < 6; ++page) At(page) = static_cast<uint8_t>(page + 1);
  ASSERT_THAT(memory_->Replace(memory_->span().subspan(2 * kPage, 2 * kPage)), IsOk());
  At(2) = At(3) = 99;
  std::fill(peer->span().begin(), peer->span().end(), uint8_t{0xee});
  EXPECT_EQ(At(1), 0xee);
  EXPECT_EQ(At(2), 99);
  EXPECT_EQ(At(3), 99);
  EXPECT_EQ(At(4), 0xee);
  // The longer file has the new pages, where ExtentsOf says.
  const auto again = Peer();
  const auto extents = memory_->ExtentsOf(memory_->span());
  ASSERT_EQ(extents.size(), 3u);
  EXPECT_EQ(extents[0].file_offset, 0u);
  EXPECT_EQ(extents[0].size, 2 * kPage);
  EXPECT_EQ(extents[1].file_offset, 6 * kPage);
  EXPECT_EQ(extents[1].size, 2 * kPage);
  EXPECT_EQ(extents[2].file_offset, 4 * kPage);
  EXPECT_EQ(again->span()[6 * kPage], 99);
}

TEST_F(SharedMemoryTest, ReplacingAgainAcrossSeamsKeepsTheRest) {
  for (uint64_t page = 0; page < 6; ++page) At(page) = static_cast<uint8_t>(page + 1);
  ASSERT_THAT(memory_->Replace(memory_->span().subspan(2 * kPage, 2 * kPage)), IsOk());
  At(2) = 12;
  At(3) = 13;
  ASSERT_THAT(memory_->Replace(memory_->span().subspan(3 * kPage, 2 * kPage)), IsOk());
  ASSERT_THAT(memory_->Replace(memory_->span().first(kPage)), IsOk());
  At(0) = 20;
  At(3) = 23;
  At(4) = 24;
  const auto peer = Peer();
  const uint8_t wanted[] = {20, 2, 12, 23, 24, 6};
  for (uint64_t page = 0; page < 6; ++page) {
    EXPECT_EQ(At(page), wanted[page]) << page;
    const auto extents = memory_->ExtentsOf(memory_->span().subspan(page * kPage, 1));
    ASSERT_EQ(extents.size(), 1u);
    EXPECT_EQ(peer->span()[extents[0].file_offset], wanted[page]) << page;
  }
  EXPECT_EQ(memory_->file_size(), 11 * kPage);
}

TEST_F(SharedMemoryTest, CannotBeMadeShorterByAnybody) {
  EXPECT_NE(ftruncate(memory_->fd(), kPage), 0);
  const auto peer = Peer();
  EXPECT_NE(ftruncate(peer->fd(), 0), 0);
}

TEST(SharedMemory, RefusesWhatMayGoAway) {
  const int unsealed = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(unsealed, 2 * kPage), 0);
  EXPECT_THAT(SharedMemory::Adopt(dup(unsealed), 2 * kPage), HasCode(Code::kInvalid));
  ASSERT_EQ(fcntl(unsealed, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_THAT(SharedMemory::Adopt(dup(unsealed), 2 * kPage), IsOk());
  EXPECT_THAT(SharedMemory::Adopt(dup(unsealed), 3 * kPage), HasCode(Code::kInvalid));
  EXPECT_THAT(SharedMemory::Adopt(unsealed, 0), HasCode(Code::kInvalid));
  EXPECT_NE(fcntl(unsealed, F_GETFD), 0);  // It was taken over, and closed.
  EXPECT_THAT(SharedMemory::Adopt(open("/dev/zero", O_RDWR | O_CLOEXEC), kPage),
              HasCode(Code::kInvalid));
}

TEST(EventFd, IsReadableFromSignalToDrain) {
  const auto event = EventFd::Create().value();
  EXPECT_FALSE(event->Wait({}));
  event->Signal();
  event->Signal();
  EXPECT_TRUE(event->Wait({}));
  EXPECT_TRUE(event->Wait(Nanos{-1}));
  event->Drain();
  EXPECT_FALSE(event->Wait({}));
}

TEST(SocketFile, IsForItsGroupAndReplacedWhenNobodyListens) {
  testing::TemporaryFolder folder;
  const std::string path = folder.File("socket");
  const SocketAddress address = SocketAddress::Parse("unix:" + path).value();
  const int first = address.Listen().value();
  struct stat file {};
  ASSERT_EQ(stat(path.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0660u);
  EXPECT_THAT(address.Listen(), HasCode(Code::kConflict));
  close(first);
  const Result<int> second = address.Listen();
  EXPECT_THAT(second, IsOk());
  close(second.value());
  // A plain file is somebody's, and stays.
  const std::string plain = folder.File("plain");
  close(open(plain.c_str(), O_CREAT | O_WRONLY, 0600));
  EXPECT_THAT(SocketAddress::Parse("unix:" + plain).value().Listen(), HasCode(Code::kConflict));
}

}  // namespace
}  // namespace cairn::kv
