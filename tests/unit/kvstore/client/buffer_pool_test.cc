// A pool that never holds more than its limit.
#include "kvstore/client/buffer_pool.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/support/recorded_memory.h"

namespace cairn::kv {
namespace {

TEST(BufferPool, BuffersAreAlignedAndUsedAgain) {
  Loop loop;
  BufferPool pool(loop, kMiB);
  const uint8_t* first = nullptr;
  {
    BufferPool::Buffer buffer = pool.Take(100'000).Take();
    first = buffer.span().data();
    EXPECT_GE(buffer.span().size(), 100'000u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % kSectorSize, 0u);
  }
  BufferPool::Buffer again = pool.Take(100'000).Take();
  EXPECT_EQ(again.span().data(), first);
}

TEST(BufferPool, WaitsAtTheLimitAndDropsIdleMemoryOfOtherSizes) {
  Loop loop;
  BufferPool pool(loop, kMiB);
  { BufferPool::Buffer small = pool.Take(64 * kKiB).Take(); }
  std::optional<BufferPool::Buffer> whole = pool.Take(kMiB).Take();
  EXPECT_EQ(pool.memory_bytes(), kMiB);
  auto waiting = pool.Take(1);
  EXPECT_FALSE(waiting.done());
  whole.reset();
  loop.RunReady();
  ASSERT_TRUE(waiting.done());
  EXPECT_LE(pool.memory_bytes(), kMiB);
  BufferPool::Buffer taken = waiting.Take();
  EXPECT_GE(taken.span().size(), 1u);
}

TEST(BufferPool, TheNetworkKnowsEachBufferUntilItsMemoryGoes) {
  Loop loop;
  testing::RecordedMemory network;
  {
    BufferPool pool(loop, kMiB, &network);
    for (int i = 0; i < 3; ++i) {
      BufferPool::Buffer buffer = pool.Take(100'000).Take();
      EXPECT_EQ(network.known.at(buffer.span().data()), buffer.span().size());
    }
    EXPECT_EQ(network.added, 1);
    BufferPool::Buffer whole = pool.Take(kMiB).Take();  // The idle one has to go.
    EXPECT_EQ(network.known.size(), 1u);
    EXPECT_EQ(network.known.begin()->first, whole.span().data());
  }
  EXPECT_TRUE(network.known.empty());
}

TEST(BufferPool, ANetworkThatRefusesABufferIsNotToldOfItsEnd) {
  Loop loop;
  testing::RecordedMemory network;
  network.refuses = true;
  BufferPool pool(loop, kMiB, &network);
  { BufferPool::Buffer buffer = pool.Take(1).Take(); }
  EXPECT_EQ(network.added, 0);
}

}  // namespace
}  // namespace cairn::kv
