// Reads of the same block at the same time, and of hot blocks.
#include "kvstore/client/block_reader.h"

#include <gtest/gtest.h>

#include "tests/unit/kvstore/client/store_fixture.h"

namespace cairn::kv {
namespace {

using ::testing::Each;
using testing::HasCode;
using testing::IsOk;

// Calls of Get for one block of a chain, each into memory of its own.
class Callers {
 public:
  Callers(Store& store, const Chain& chain, size_t block, size_t count)
      : store_(store), chain_(chain), block_(block) {
    for (size_t i = 0; i < count; ++i) Start(kNever);
  }
  void Start(Instant deadline) {
    rooms_.emplace_back(AlignUp(chain_.bytes[block_].size(), kSectorSize));
    std::vector<BlockRead> reads{{chain_.ids[block_], rooms_.back().span()}};
    calls_.push_back(store_.store().Get(store_.space, chain_.ids, std::move(reads), deadline));
  }
  std::vector<Status> Finish() {
    store_.loop().RunReady();
    std::vector<Status> outcomes;
    for (size_t i = 0; i < calls_.size(); ++i) {
      Status outcome = calls_[i].Take()[0].status;
      const ByteSpan wanted = chain_.bytes[block_].span();
      const bool same = std::equal(wanted.begin(), wanted.end(), rooms_[i].data());
      if (outcome.ok() && !same) outcome = Status(Code::kCorrupt, "wrong bytes");
      outcomes.push_back(std::move(outcome));
    }
    return outcomes;
  }
  Bytes& room(size_t i) { return rooms_[i]; }

 private:
  Store& store_;
  const Chain& chain_;
  const size_t block_;
  std::deque<Bytes> rooms_;
  std::vector<Task<std::vector<BlockReadResult>>> calls_;
};

int ReadsOf(Store& store) {
  int reads = 0;
  for (size_t i = 0; i < store.target_count(); ++i) reads += store.target(i).reads;
  return reads;
}

void Hold(Store& store, Event* event) {
  for (size_t i = 0; i < store.target_count(); ++i) store.target(i).hold_reads = event;
}

TEST(BlockReader, EightCallersAtOnceReadTheDeviceOnce) {
  Store store;
  const Chain chain = store.MakeChain({40'000, 1'000'000});
  ASSERT_THAT(store.Put(chain), Each(IsOk()));
  Event go(store.loop());
  Hold(store, &go);
  Callers callers(store, chain, 0, 8);
  EXPECT_EQ(ReadsOf(store), 1);
  go.Set();
  EXPECT_THAT(callers.Finish(), Each(IsOk()));
  EXPECT_EQ(ReadsOf(store), 1);
  EXPECT_EQ(store.stats().shared_reads, 7u);
}

TEST(BlockReader, CallersOfOtherBlocksDoNotWait) {
  Store store;
  const Chain chain = store.MakeChain({40'000, 50'000});
  ASSERT_THAT(store.Put(chain), Each(IsOk()));
  Event go(store.loop());
  Hold(store, &go);
  Callers first(store, chain, 0, 2);
  Callers second(store, chain, 1, 2);
  EXPECT_EQ(ReadsOf(store), 2);
  go.Set();
  EXPECT_THAT(first.Finish(), Each(IsOk()));
  EXPECT_THAT(second.Finish(), Each(IsOk()));
}

TEST(BlockReader, WhatFailsForOneFailsForAllThatRodeAlong) {
  Store store;
  const Chain chain = store.MakeChain({40'000});
  ASSERT_THAT(store.Put(chain), Each(IsOk()));
  Event go(store.loop());
  Hold(store, &go);
  Callers callers(store, chain, 0, 3);
  for (size_t i = 0; i < store.target_count(); ++i) store.target(i).down = true;
  go.Set();
  EXPECT_THAT(callers.Finish(), Each(HasCode(Code::kUnavailable)));
}

TEST(BlockReader, AnImpatientLeaderDoesNotFailTheOthers) {
  Store store;
  const Chain chain = store.MakeChain({40'000});
  ASSERT_THAT(store.Put(chain), Each(IsOk()));
  Event go(store.loop());
  Hold(store, &go);
  Callers callers(store, chain, 0, 0);
  callers.Start(store.clock().Now() + Millis(10));
  callers.Start(kNever);
  // The leader's read fails after its deadline: it does not rebuild any more. The other does.
  for (size_t i = 0; i < store.target_count(); ++i) {
    store.target(i).down = store.target(i).reads > 0;
    store.target(i).hold_reads = nullptr;
  }
  store.clock().Advance(20);
  go.Set();
  const std::vector<Status> outcomes = callers.Finish();
  EXPECT_THAT(outcomes[0], HasCode(Code::kDeadline));
  EXPECT_THAT(outcomes[1], IsOk());
  EXPECT_EQ(store.stats().degraded_reads, 1u);
}

TEST(BlockReader, AHotBlockIsReadFromMemory) {
  Store store(12, 16 * kMiB);
  const Chain chain = store.MakeChain({40'000, 1'000'000});
  ASSERT_THAT(store.Put(chain), Each(IsOk()));
  for (int round = 0; round < 2; ++round) store.ExpectAllReadable(chain);
  const int before = ReadsOf(store);
  for (int round = 0; round < 3; ++round) store.ExpectAllReadable(chain);
  EXPECT_THAT(store.Get(chain, 1, kNever, 13), IsOk());
  EXPECT_EQ(ReadsOf(store), before);
  EXPECT_EQ(store.stats().cache_hits, 7u);
}

TEST(BlockReader, WhatIsDeletedOrExpiredIsNotServedFromMemory) {
  Store store(12, 16 * kMiB);
  const Chain kept = store.MakeChain({40'000});
  const Chain deleted = store.MakeChain({50'000});
  for (const Chain* chain : {&kept, &deleted}) {
    ASSERT_THAT(store.Put(*chain), Each(IsOk()));
    for (int round = 0; round < 3; ++round) store.ExpectAllReadable(*chain);
  }
  EXPECT_EQ(store.stats().cache_hits, 2u);
  ASSERT_THAT(store.Await(store.store().Delete(store.space, deleted.ids, 0)), IsOk());
  EXPECT_THAT(store.Get(deleted, 0), HasCode(Code::kNotFound));
  store.clock().Advance(4 * 24 * 3600 * 1000LL);
  EXPECT_THAT(store.Get(kept, 0), HasCode(Code::kNotFound));
  EXPECT_EQ(store.stats().cache_hits, 2u);
}

// The same ids put again after a delete may have other bytes: never those of before.
TEST(BlockReader, WhatIsPutAgainIsReadAnew) {
  Store store(12, 16 * kMiB);
  Chain chain = store.MakeChain({40'000});
  ASSERT_THAT(store.Put(chain), Each(IsOk()));
  for (int round = 0; round < 3; ++round) store.ExpectAllReadable(chain);
  ASSERT_THAT(store.Await(store.store().Delete(store.space, chain.ids, 0)), IsOk());
  chain.bytes[0].data()[17] ^= 1;
  ASSERT_THAT(store.Put(chain), Each(IsOk()));
  for (int round = 0; round < 3; ++round) store.ExpectAllReadable(chain);
}

// `room` cut into pieces at random places; some are empty.
std::vector<MutableByteSpan> CutUp(Bytes& room, uint64_t begin, Random& random) {
  std::vector<MutableByteSpan> parts;
  while (begin < room.size()) {
    const uint64_t size = std::min<uint64_t>(random.Below(50'000), room.size() - begin);
    parts.push_back(room.span().subspan(begin, size));
    begin += size;
  }
  return parts;
}

TEST(BlockReader, FillsScatteredMemoryOfAnyAlignment) {
  Random random(6);
  for (const uint64_t cache_bytes : {uint64_t{0}, 16 * kMiB}) {
    Store store(12, cache_bytes);
    const Chain chain = store.MakeChain({1, 40'000, 1'000'000});
    ASSERT_THAT(store.Put(chain), Each(IsOk()));
    for (int round = 0; round < 40; ++round) {
      store.target(random.Below(12)).down = round % 2 == 1;
      std::vector<Bytes> rooms;
      std::vector<BlockRead> reads;
      std::vector<uint64_t> begins;
      for (size_t i = 0; i < chain.ids.size(); ++i) {
        begins.push_back(random.Below(5'000));
        rooms.emplace_back(begins[i] + chain.bytes[i].size() + random.Below(3) * 100);
        reads.push_back({.id = chain.ids[i], .scatter = CutUp(rooms[i], begins[i], random)});
      }
      const auto results =
          store.Await(store.store().Get(store.space, chain.ids, std::move(reads), kNever));
      for (size_t i = 0; i < chain.ids.size(); ++i) {
        ASSERT_THAT(results[i].status, IsOk());
        const ByteSpan wanted = chain.bytes[i].span();
        ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), rooms[i].data() + begins[i]));
      }
      for (size_t i = 0; i < 12; ++i) store.target(i).down = false;
    }
  }
}

TEST(BlockReader, RefusesScatteredMemoryThatIsTooSmallOrTooMuch) {
  Store store;
  const Chain chain = store.MakeChain({10'000});
  ASSERT_THAT(store.Put(chain), Each(IsOk()));
  Bytes room(20'000);
  std::vector<MutableByteSpan> few{room.span().first(5'000), room.span().first(4'999)};
  std::vector<MutableByteSpan> many(kScatterMax + 1, room.span().first(5));
  for (const std::vector<MutableByteSpan>& scatter : {few, many}) {
    std::vector<BlockRead> reads{{.id = chain.ids[0], .scatter = scatter}};
    const auto results =
        store.Await(store.store().Get(store.space, chain.ids, std::move(reads), kNever));
    EXPECT_THAT(results[0].status, HasCode(Code::kInvalid));
  }
}

TEST(Scatter, FillsPiecesOfAnySizeInOrder) {
  Store store;
  const Chain chain = store.MakeChain({40'000});
  ASSERT_THAT(store.Put(chain), Each(IsOk()));
  std::vector<MutableByteSpan> parts;
  Bytes room(40'000 + 100);
  for (size_t at = 0; at < room.size(); at += 1'000) {
    parts.push_back(room.span().subspan(at, std::min<size_t>(1'000, room.size() - at)));
  }
  EXPECT_EQ(SizeOf(parts), room.size());
  Scatter(chain.bytes[0].span(), parts);
  EXPECT_TRUE(std::equal(chain.bytes[0].span().begin(), chain.bytes[0].span().end(), room.data()));
  EXPECT_EQ(ChecksumOf(parts, 40'000), Checksum(chain.bytes[0].span()));
  EXPECT_NE(ChecksumOf(parts, 39'999), Checksum(chain.bytes[0].span()));
}

TEST(BlockReader, ReadsAStripeThatLacksShardsOnceForAllItsBlocks) {
  Store store;
  const Chain chain = store.MakeChain(std::vector<uint32_t>(8, 256 * kKiB));
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  uint64_t before = 0;
  for (size_t i = 0; i < 12; ++i) {
    if (i < 2) store.target(i).shards.clear();
    before += store.target(i).bytes_read;
  }
  std::vector<Bytes> memory;
  std::vector<BlockRead> reads;
  for (size_t i = 0; i < 8; ++i) {
    memory.emplace_back(256 * kKiB);
    reads.push_back({.id = chain.ids[i], .into = memory.back().span()});
  }
  const auto results = store.Await(store.store().Get(store.space, chain.ids, reads, kNever));
  uint64_t read = 0;
  for (size_t i = 0; i < 12; ++i) read += store.target(i).bytes_read;
  for (size_t i = 0; i < 8; ++i) {
    ASSERT_THAT(results[i].status, IsOk());
    const ByteSpan wanted = chain.bytes[i].span();
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), memory[i].data())) << i;
  }
  EXPECT_LT(read - before, 11 * 256 * kKiB) << "2.5 times as much, block by block";
}

TEST(BlockReader, LendsWhatItHasInMemoryToWhoTakesIt) {
  Store store(12, 16 * kMiB);
  const Chain chain = store.MakeChain({100'000});
  EXPECT_THAT(store.Put(chain), Each(IsOk()));
  for (int sight = 0; sight < 2; ++sight) EXPECT_THAT(store.Get(chain, 0), IsOk());
  Bytes memory(AlignUp(100'000, kSectorSize));
  const std::vector<BlockRead> reads{
      {.id = chain.ids[0], .into = memory.span(), .may_be_lent = true}};
  const auto results = store.Await(store.store().Get(store.space, chain.ids, reads, kNever));
  ASSERT_THAT(results[0].status, IsOk());
  ASSERT_NE(results[0].lent, nullptr);
  uint64_t at = 0;
  for (const ByteSpan part : *results[0].lent) {
    EXPECT_TRUE(std::equal(part.begin(), part.end(), chain.bytes[0].data() + at));
    at += part.size();
  }
  EXPECT_EQ(at, 100'000u);
  EXPECT_EQ(results[0].checksum, Checksum(chain.bytes[0].span()));
}

}  // namespace
}  // namespace cairn::kv
