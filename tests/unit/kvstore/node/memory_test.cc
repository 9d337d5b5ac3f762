// What the index takes of the heap, by a counting allocator: 128 MiB per stored TiB is the bound.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "kvstore/base/random.h"
#include "kvstore/index/state_table.h"
#include "kvstore/segment/shard_table.h"

namespace {

size_t heap_bytes = 0;  // As malloc accounts them: with what it rounds up. One thread only.

}  // namespace

// Not inline: g++ 12 would see malloc's memory go to delete.
[[gnu::noinline]] void* operator new(size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  heap_bytes += malloc_usable_size(memory) + sizeof(size_t);
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory != nullptr) heap_bytes -= malloc_usable_size(memory) + sizeof(size_t);
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { operator delete(memory); }

namespace cairn::kv {
namespace {

// Blocks of 256 KiB put 16 at a time, at 10 + 2 on 12 targets, for each TiB of them.
constexpr uint64_t kStripesPerTiB = (uint64_t{1} << 40) / (16 * 256 * kKiB);
constexpr uint32_t kTargets = 12;

StripeId Draw(Random& random) {
  const uint64_t high = random.Next();
  return {{high, random.Next()}};
}

// Fills one target's tables with its share of `tib`; the bytes that they take on all targets.
uint64_t MeasureIndex(double tib) {
  const auto stripes = static_cast<uint64_t>(static_cast<double>(kStripesPerTiB) * tib);
  const size_t before = heap_bytes;
  Random random(1);
  auto shards = std::make_unique<ShardTable>();
  for (uint64_t i = 0; i < stripes; ++i) {
    const ShardPlace place{.segment = {static_cast<uint32_t>(i / 150)},
                           .sector = static_cast<uint32_t>(i % 150) * 104,
                           .payload_size = 103 * 4096,
                           .header_sectors = 1,
                           .index = {static_cast<uint8_t>(i % kTargets)}};
    shards->Set(Draw(random), place);
  }
  auto states = std::make_unique<StateTable>();
  for (uint64_t i = 0; i < stripes * 3 / kTargets; ++i) {
    const StripeState state{.space = NamespaceId{{1, i % 100}},
                            .expires_at = {1'700'000'000'000},
                            .last_access = 1'700'000'000,
                            .keep_until = 0,
                            .position = static_cast<uint32_t>(i % 1000),
                            .ttl_seconds = 86400,
                            .payload_bytes = 4 << 20,
                            .kind = RetentionKind::kRefreshed,
                            .hit = true};
    EXPECT_TRUE(states->Set(Draw(random), state).ok());
  }
  const uint64_t bytes = heap_bytes - before;
  // What the tables say of themselves is true to 2 %.
  const auto said = static_cast<double>(shards->memory_bytes() + states->memory_bytes());
  EXPECT_NEAR(said, static_cast<double>(bytes), static_cast<double>(bytes) * 0.02);
  return bytes * kTargets;
}

TEST(IndexMemory, Is128MiBPerStoredTiBAtMost) {
  for (const double tib : {1.0, 1.3, 2.1}) {
    const uint64_t bytes = MeasureIndex(tib);
    const double mib_per_tib = static_cast<double>(bytes) / static_cast<double>(kMiB) / tib;
    RecordProperty("mib_per_tib", std::to_string(mib_per_tib));
    EXPECT_LE(mib_per_tib, 125.0) << tib;  // The rest is for the tables of segments.
    EXPECT_GE(mib_per_tib, 90.0) << tib;   // 372 bytes a stripe are in the slots alone.
  }
}

}  // namespace
}  // namespace cairn::kv
