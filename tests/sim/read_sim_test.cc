// Reads of a whole store in virtual time: hedging around a slow target.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "tests/sim/store_checker.h"
#include "tests/sim/store_world.h"
#include "tests/support/status_matchers.h"

namespace cairn::sim {
namespace {

using cairn::testing::IsOk;

// Blocks of one size, each put alone, in a store on simulated targets.
class ReadWorld {
 public:
  ReadWorld(kv::ReaderLimits limits, uint32_t block_bytes, size_t blocks)
      : world_({.seed = 11}), block_bytes_(block_bytes) {
    world_.node_options.store.reader = limits;
    world_.node_options.store.cache.bytes_max = 0;
    EXPECT_THAT(world_.Start(), IsOk());
    auto space = world_.clock().Await(store().Attach({.name = "s", .fingerprint = "f"}));
    space_ = space.value();
    kv::Random random(5);
    for (size_t i = 0; i < blocks; ++i) {
      kv::BlockId id;
      id.high = random.Next();
      id.low = random.Next();
      ids_.push_back(id);
      const kv::Bytes bytes = StoreChecker::BytesOf(id, block_bytes);
      kv::ChainPut put{.space = space_, .chain = {id}, .blocks = {{id, bytes.span()}}};
      const auto outcomes = world_.clock().Await(store().Put(std::move(put)));
      EXPECT_THAT(outcomes[0], IsOk());
    }
  }
  ~ReadWorld() { EXPECT_THAT(world_.Stop(), IsOk()); }

  // Gets `count` blocks in random order, `depth` at once; each must be exact. Their times, sorted.
  std::vector<kv::Nanos> Read(size_t count, size_t depth) {
    left_ = count;
    took_.clear();
    std::vector<kv::Task<void>> readers;
    for (size_t i = 0; i < depth; ++i) readers.push_back(Reader(100 + i));
    for (kv::Task<void>& reader : readers) world_.clock().Await(std::move(reader));
    std::sort(took_.begin(), took_.end());
    return took_;
  }
  StoreWorld& world() { return world_; }
  kv::BlockStore& store() { return world_.node().store(); }
  kv::StoreStats stats() { return world_.node().stats(); }

 private:
  kv::Task<void> Reader(uint64_t seed) {
    kv::Random random(seed);
    while (left_ > 0) {
      --left_;
      const kv::BlockId id = ids_[random.Below(ids_.size())];
      kv::Bytes room(block_bytes_);
      std::vector<kv::BlockRead> reads{{.id = id, .into = room.sectors()}};
      const kv::Instant began = world_.clock().Now();
      const std::vector<kv::BlockId> chain(1, id);
      const auto results = co_await store().Get(space_, chain, std::move(reads), kv::kNever);
      took_.push_back(world_.clock().Now() - began);
      EXPECT_THAT(results[0].status, IsOk());
      const kv::Bytes wanted = StoreChecker::BytesOf(id, block_bytes_);
      EXPECT_TRUE(std::equal(wanted.span().begin(), wanted.span().end(), room.data()));
      // A read that lost its race must not find this memory: whatever is there stays.
      std::fill(room.sectors().begin(), room.sectors().end(), uint8_t{0x5a});
      graves_.push_back(std::move(room));
      if (graves_.size() > 64) CheckOldest();
    }
  }
  void CheckOldest() {
    const kv::ByteSpan oldest = std::as_const(graves_.front()).sectors();
    EXPECT_TRUE(std::all_of(oldest.begin(), oldest.end(), [](uint8_t b) { return b == 0x5a; }));
    graves_.pop_front();
  }

  StoreWorld world_;
  const uint32_t block_bytes_;
  kv::NamespaceId space_;
  std::vector<kv::BlockId> ids_;
  std::deque<kv::Bytes> graves_;
  size_t left_ = 0;
  std::vector<kv::Nanos> took_;
};

kv::Nanos Percentile(const std::vector<kv::Nanos>& sorted, size_t percent) {
  return sorted[(sorted.size() - 1) * percent / 100];
}

// A million out of a million operations take a hundred times as long, and 10 ms more.
constexpr DiskFaults kSlow{.slow = 1'000'000};
// One in 300.
constexpr DiskFaults kStalls{.slow = 3'300};

TEST(HedgedReads, ASlowTargetIsReadAround) {
  std::vector<kv::Nanos> p99;
  for (const uint32_t percent : {0u, 20u}) {
    ReadWorld reads({.hedge_percent = percent}, 700'000, 40);
    reads.Read(400, 2);
    reads.world().disk(3).SetFaults(kSlow);
    reads.Read(250, 2);  // Until it is known to be slow.
    p99.push_back(Percentile(reads.Read(300, 2), 99));
    reads.world().disk(3).SetFaults({});
    const kv::StoreStats stats = reads.stats();
    EXPECT_EQ(stats.hedges_won > 150, percent > 0) << stats.hedges << " " << stats.hedges_won;
    EXPECT_EQ(stats.degraded_reads, 0u);
  }
  EXPECT_GT(p99[0], kv::Millis(17));
  EXPECT_LT(p99[1], kv::Millis(5));
}

TEST(HedgedReads, RareStallsOfAnyTargetAreReadAroundWhereEveryReadMayBeLeft) {
  std::vector<kv::Nanos> p99;
  for (const bool in_place : {true, false}) {
    ReadWorld reads({.hedge_percent = 20, .land_in_place = in_place}, 700'000, 40);
    reads.Read(400, 1);
    for (uint32_t i = 0; i < 12; ++i) reads.world().disk(i).SetFaults(kStalls);
    p99.push_back(Percentile(reads.Read(500, 1), 99));
    for (uint32_t i = 0; i < 12; ++i) reads.world().disk(i).SetFaults({});
  }
  EXPECT_GT(p99[0], kv::Millis(17));
  EXPECT_LT(p99[1], kv::Millis(5));
}

// Small blocks: a hedge reads ten shards in place of one. Two slow targets of twelve are gone round
// as if they were lost, whatever the budget; and the ten are those of other targets.
TEST(HedgedReads, TwoSlowTargetsNeedNoBudget) {
  ReadWorld reads({.hedge_percent = 1}, 100'000, 200);
  reads.Read(1'000, 2);
  for (const uint32_t slow : {3, 4}) reads.world().disk(slow).SetFaults(kSlow);
  reads.Read(1'500, 2);  // Until they are known to be slow.
  EXPECT_LT(Percentile(reads.Read(1'000, 2), 99), kv::Millis(5));
  for (const uint32_t slow : {3, 4}) reads.world().disk(slow).SetFaults({});
}

// Of more slow targets the budget says when to wait instead.
TEST(HedgedReads, ReadNoMoreInAdditionThanAllowed) {
  ReadWorld reads({.hedge_percent = 5}, 100'000, 200);
  reads.Read(1'000, 2);
  for (const uint32_t slow : {2, 3, 4}) reads.world().disk(slow).SetFaults(kSlow);
  reads.Read(2'000, 2);  // Until they are known to be slow.
  const auto read_bytes = [&] {
    uint64_t bytes = 0;
    for (const auto& target : reads.world().node().targets()) {
      bytes += target->log().stats().bytes_read;
    }
    return bytes;
  };
  const uint64_t before = read_bytes();
  reads.Read(2'000, 2);
  for (const uint32_t slow : {2, 3, 4}) reads.world().disk(slow).SetFaults({});
  const double ratio = static_cast<double>(read_bytes() - before) / (2'000 * 102'400.0);
  EXPECT_GT(reads.stats().hedges, 0u);
  EXPECT_LT(ratio, 1.09);  // 5 %, and what was saved before.
}

}  // namespace
}  // namespace cairn::sim
