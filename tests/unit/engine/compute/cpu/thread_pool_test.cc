// Every piece is done once, however many threads there are.
#include "engine/compute/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace cairn::engine {
namespace {

TEST(ThreadPool, DoesEveryPieceOnce) {
  for (const uint32_t threads : {1u, 2u, 3u}) {
    ThreadPool pool(threads);
    for (uint32_t pieces = 0; pieces < 70; ++pieces) {
      std::vector<std::atomic<uint32_t>> done(pieces);
      std::atomic<uint32_t> strangers{0};
      pool.Run(pieces, [&](uint32_t piece, uint32_t thread) {
        done[piece].fetch_add(1);
        if (thread >= threads) strangers.fetch_add(1);
      });
      for (const auto& count : done) EXPECT_EQ(count.load(), 1u);
      EXPECT_EQ(strangers.load(), 0u);
    }
  }
}

TEST(ThreadPool, ShowsOneLoopsWritesToTheNext) {
  ThreadPool pool(2);
  std::vector<uint32_t> values(64, 0);
  for (uint32_t round = 0; round < 2000; ++round) {
    pool.Run(64, [&](uint32_t piece, uint32_t) { values[piece] += 1; });
    for (const uint32_t value : values) ASSERT_EQ(value, round + 1);
  }
}

}  // namespace
}  // namespace cairn::engine
