// One suite of the BlockStore contract, for the store itself and for every way to reach it.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "kvstore/base/checksum.h"
#include "tests/unit/kvstore/serve/served_store.h"

namespace cairn::kv {
namespace {

using ::testing::Each;
using testing::HasCode;
using testing::IsOk;

enum class Way { kDirect, kShared, kUnixInline, kTcp, kTls };

class Conformance : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    const Way way = GetParam();
    if (way == Way::kTls) served_.UseTls();
    served_.StartServer();
    if (way == Way::kDirect) {
      store_ = &served_.store();
    } else {
      const bool is_tcp = way == Way::kTcp || way == Way::kTls;
      RemoteStore& remote = is_tcp ? served_.ConnectTcp() : served_.ConnectUnix();
      store_ = &remote;
      if (way != Way::kUnixInline) remote_ = &remote;
    }
    space_ = Await(store_->Attach({.name = "tests", .fingerprint = "f", .run_blocks = 8})).value();
  }

  template <typename T>
  T Await(Task<T> task) {
    return served_.Await(std::move(task));
  }
  // Memory for blocks: registered where the way has it.
  MutableByteSpan Memory(uint64_t size) {
    const uint64_t whole = AlignUp(size, kSectorSize);
    if (remote_ == nullptr) return memory_.emplace_back(whole).sectors();
    if (region_.size() < whole) region_ = Await(remote_->NewRegion(32 * kMiB)).value();
    const MutableByteSpan place = region_.first(whole);
    region_ = region_.subspan(whole);
    return place;
  }
  // The blocks' bytes again, where the server may read them.
  ChainPut SharedPutOf(const Blocks& blocks) {
    ChainPut put = ServedStore::PutOf(space_, blocks);
    uint64_t size = 0;
    for (const BlockWrite& block : put.blocks) size += AlignUp(block.bytes.size(), kSectorSize);
    const MutableByteSpan memory = Memory(size);
    uint64_t at = 0;
    for (BlockWrite& block : put.blocks) {
      const MutableByteSpan place = memory.subspan(at, block.bytes.size());
      std::copy(block.bytes.begin(), block.bytes.end(), place.begin());
      at += AlignUp(block.bytes.size(), kSectorSize);
      block.bytes = place;
    }
    return put;
  }
  std::vector<Status> Put(const Blocks& blocks) { return Await(store_->Put(SharedPutOf(blocks))); }
  ChainHit Lookup(const Blocks& blocks) {
    return Await(store_->Lookup(space_, blocks.ids, {})).value();
  }
  Instant Soon() { return served_.clock().Now() + Seconds(60); }

  void ExpectReadable(const Blocks& blocks) {
    std::vector<BlockRead> reads;
    for (size_t i = 0; i < blocks.ids.size(); ++i) {
      BlockRead& read = reads.emplace_back();
      read.id = blocks.ids[i];
      read.into = Memory(AlignUp(blocks.bytes[i].size(), kSectorSize));
    }
    const std::vector<BlockRead> kept = reads;
    const auto results = Await(store_->Get(space_, blocks.ids, std::move(reads), Soon()));
    ASSERT_EQ(results.size(), blocks.ids.size());
    for (size_t i = 0; i < results.size(); ++i) {
      ASSERT_THAT(results[i].status, IsOk()) << i;
      ASSERT_EQ(results[i].size, blocks.bytes[i].size()) << i;
      const ByteSpan wanted = blocks.bytes[i].span();
      EXPECT_EQ(results[i].checksum, Checksum(wanted)) << i;
      EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), kept[i].into.begin())) << i;
    }
  }

  ServedStore served_;
  BlockStore* store_ = nullptr;
  RemoteStore* remote_ = nullptr;  // Where memory is to be registered.
  NamespaceId space_;
  std::deque<Bytes> memory_;
  MutableByteSpan region_;  // What is left of the latest.
};

std::string NameOf(const ::testing::TestParamInfo<Way>& way) {
  switch (way.param) {
    case Way::kDirect: return "Direct";
    case Way::kShared: return "Shared";
    case Way::kUnixInline: return "UnixInline";
    case Way::kTls: return "Tls";
    case Way::kTcp: break;
  }
  return "Tcp";
}
INSTANTIATE_TEST_SUITE_P(Way, Conformance,
                         ::testing::Values(Way::kDirect, Way::kShared, Way::kUnixInline,
                                           Way::kTcp, Way::kTls),
                         NameOf);

TEST_P(Conformance, ReturnsWhatWasPut) {
  const Blocks blocks =
      served_.MakeBlocks({1, 4095, 4096, 4097, 100'000, 1'000'000, 5'000'000, 65'536, 3, 262'144});
  EXPECT_EQ(Lookup(blocks).miss, MissReason::kAbsent);
  EXPECT_THAT(Put(blocks), Each(IsOk()));
  const ChainHit hit = Lookup(blocks);
  EXPECT_EQ(hit.blocks, blocks.ids.size());
  EXPECT_EQ(hit.sizes[6], 5'000'000u);
  ExpectReadable(blocks);
}

TEST_P(Conformance, TakesMoreBlocksThanOneRequestHolds) {
  const Blocks blocks = served_.MakeBlocks(std::vector<uint32_t>(600, 20'000));
  EXPECT_THAT(Put(blocks), Each(IsOk()));
  EXPECT_EQ(Lookup(blocks).blocks, 600u);
  ExpectReadable(blocks);
}

TEST_P(Conformance, ReadsIntoManySegmentsOfAnySize) {
  const Blocks blocks = served_.MakeBlocks({300'000, 70'000});
  EXPECT_THAT(Put(blocks), Each(IsOk()));
  std::vector<BlockRead> reads(2);
  std::vector<uint8_t> all(400'000);
  for (size_t i = 0; i < 2; ++i) {
    reads[i].id = blocks.ids[i];
    size_t at = i * 310'000;
    for (size_t left = blocks.bytes[i].size(), step = 1; left > 0; step = step * 2 + 1) {
      const size_t size = std::min(left, step);
      reads[i].scatter.push_back(MutableByteSpan(all).subspan(at, size));
      at += size;
      left -= size;
    }
  }
  const auto results = Await(store_->Get(space_, blocks.ids, reads, Soon()));
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_THAT(results[i].status, IsOk());
    const ByteSpan wanted = blocks.bytes[i].span();
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), all.begin() + 310'000 * i));
  }
}

TEST_P(Conformance, ReadsIntoWholePagesInAnyOrder) {
  constexpr size_t kPages = 1000;
  const Blocks blocks = served_.MakeBlocks({kPages * 4096});
  EXPECT_THAT(Put(blocks), Each(IsOk()));
  const MutableByteSpan memory = Memory(2 * kPages * 4096);
  std::vector<BlockRead> reads(1);
  reads[0].id = blocks.ids[0];
  for (size_t i = 0; i < kPages; ++i) {
    reads[0].scatter.push_back(memory.subspan((2 * (kPages - i) - 1) * 4096, 4096));
  }
  const std::vector<BlockRead> kept = reads;
  const auto results = Await(store_->Get(space_, blocks.ids, std::move(reads), Soon()));
  ASSERT_THAT(results[0].status, IsOk());
  for (size_t i = 0; i < kPages; ++i) {
    const ByteSpan wanted = blocks.bytes[0].span().subspan(i * 4096, 4096);
    ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), kept[0].scatter[i].begin())) << i;
  }
}

TEST_P(Conformance, StoresWhatLiesInManySegments) {
  const Blocks blocks = served_.MakeBlocks({200'000, 5'000, 64'000});
  ChainPut put = SharedPutOf(blocks);
  for (BlockWrite& block : put.blocks) {
    for (size_t at = 0, step = 1; at < block.bytes.size(); step = step * 2 + 1) {
      const size_t size = std::min(block.bytes.size() - at, step);
      block.gather.push_back(block.bytes.subspan(at, size));
      at += size;
    }
    block.bytes = {};
  }
  EXPECT_THAT(Await(store_->Put(std::move(put))), Each(IsOk()));
  ExpectReadable(blocks);
}

TEST_P(Conformance, EachReadHasItsOwnResult) {
  const Blocks blocks = served_.MakeBlocks({10'000, 20'000, 30'000});
  EXPECT_THAT(Put(blocks), Each(IsOk()));
  std::vector<BlockId> chain = blocks.ids;
  chain.push_back(BlockId{{1, 2}});
  std::vector<BlockRead> reads(5);
  reads[0] = {.id = chain[2], .into = Memory(32'768)};
  reads[1] = {.id = chain[3], .into = Memory(32'768)};           // Never put.
  reads[2] = {.id = BlockId{{7, 7}}, .into = Memory(32'768)};    // Not in the chain.
  reads[3] = {.id = chain[1], .into = Memory(16'384)};           // Too small.
  reads[4] = {.id = chain[0], .into = Memory(65'536)};           // Larger than needed.
  const auto results = Await(store_->Get(space_, chain, reads, Soon()));
  EXPECT_THAT(results[0].status, IsOk());
  EXPECT_EQ(results[0].size, 30'000u);
  EXPECT_THAT(results[1].status, HasCode(Code::kNotFound));
  EXPECT_THAT(results[2].status, HasCode(Code::kInvalid));
  EXPECT_THAT(results[3].status, HasCode(Code::kInvalid));
  EXPECT_THAT(results[4].status, IsOk());
  EXPECT_EQ(results[4].size, 10'000u);
}

TEST_P(Conformance, ManyCallsAtOnceGetTheirOwnAnswers) {
  const Blocks blocks = served_.MakeBlocks(std::vector<uint32_t>(64, 50'000));
  EXPECT_THAT(Put(blocks), Each(IsOk()));
  std::vector<MutableByteSpan> places;
  std::vector<Task<std::vector<BlockReadResult>>> gets;
  for (size_t i = 0; i < blocks.ids.size(); ++i) places.push_back(Memory(53'248));
  for (size_t i = 0; i < blocks.ids.size(); ++i) {
    std::vector<BlockRead> reads(1);
    reads[0] = {.id = blocks.ids[i], .into = places[i]};
    gets.push_back(store_->Get(space_, blocks.ids, std::move(reads), Soon()));
  }
  for (size_t i = 0; i < gets.size(); ++i) {
    const auto results = Await(std::move(gets[i]));
    ASSERT_THAT(results[0].status, IsOk());
    const ByteSpan wanted = blocks.bytes[i].span();
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), places[i].begin())) << i;
  }
}

TEST_P(Conformance, RefusesWhatMakesNoSense) {
  const Blocks blocks = served_.MakeBlocks({1000, 1000});
  ChainPut put = SharedPutOf(blocks);
  put.first = 1;  // The chain ends before the second block.
  EXPECT_THAT(Await(store_->Put(put)), Each(HasCode(Code::kInvalid)));
  put = SharedPutOf(blocks);
  put.blocks[1].bytes = {};
  EXPECT_THAT(Await(store_->Put(put)), Each(HasCode(Code::kInvalid)));
  put = SharedPutOf(blocks);
  put.blocks[1].checksum = 1;
  EXPECT_THAT(Await(store_->Put(put)), Each(HasCode(Code::kCorrupt)));
  NamespaceId unknown;
  unknown.low = 5;
  put = SharedPutOf(blocks);
  put.space = unknown;
  EXPECT_THAT(Await(store_->Put(put)), Each(HasCode(Code::kInvalid)));
  EXPECT_THAT(Await(store_->Lookup(unknown, blocks.ids, {})), HasCode(Code::kInvalid));
  EXPECT_THAT(Await(store_->Attach({.name = "tests", .fingerprint = "another"})),
              HasCode(Code::kConflict));
  EXPECT_THAT(Await(store_->Attach({.name = "", .fingerprint = "f"})), HasCode(Code::kInvalid));
  EXPECT_EQ(Lookup(blocks).blocks, 0u);
}

TEST_P(Conformance, BlocksAreFoundEachForItself) {
  const Blocks blocks = served_.MakeBlocks({100, 200, 300, 400});
  ChainPut put = SharedPutOf(blocks);
  put.blocks.erase(put.blocks.begin(), put.blocks.begin() + 2);
  put.first = 2;
  EXPECT_THAT(Await(store_->Put(std::move(put))), Each(IsOk()));
  EXPECT_EQ(Lookup(blocks).blocks, 0u);
  const Result<EachHit> each = Await(store_->LookupEach(space_, blocks.ids, 1, {}));
  ASSERT_THAT(each, IsOk());
  ASSERT_EQ(each.value().blocks.size(), 3u);
  EXPECT_EQ(each.value().blocks[0].size, 0u);
  EXPECT_EQ(each.value().blocks[0].miss, MissReason::kAbsent);
  EXPECT_EQ(each.value().blocks[1].size, 300u);
  EXPECT_EQ(each.value().blocks[2].size, 400u);
}

TEST_P(Conformance, LeasesAreGivenRenewedAndReleased) {
  const Blocks blocks = served_.MakeBlocks({1000});
  EXPECT_THAT(Put(blocks), Each(IsOk()));
  LeaseOrder order;
  order.duration = Seconds(20);
  const Result<ChainHit> hit = Await(store_->Lookup(space_, blocks.ids, order));
  ASSERT_THAT(hit, IsOk());
  EXPECT_NE(hit.value().lease.value, 0u);
  EXPECT_GT(hit.value().lease_for, Seconds(15));
  const std::vector<LeaseId> leases{hit.value().lease, LeaseId{12345}};
  const std::vector<Status> renewed = Await(store_->Renew(leases, order));
  ASSERT_EQ(renewed.size(), 2u);
  EXPECT_THAT(renewed[0], IsOk());
  EXPECT_THAT(renewed[1], HasCode(Code::kNotFound));
  EXPECT_THAT(Await(store_->Release(leases, {})), IsOk());
  EXPECT_THAT(Await(store_->Renew(leases, order))[0], HasCode(Code::kNotFound));
}

TEST_P(Conformance, DeleteTakesTheTailOfAChain) {
  const Blocks blocks = served_.MakeBlocks(std::vector<uint32_t>(20, 1000));
  EXPECT_THAT(Put(blocks), Each(IsOk()));
  EXPECT_THAT(Await(store_->Delete(space_, blocks.ids, 8)), IsOk());
  EXPECT_EQ(Lookup(blocks).blocks, 8u);
}

TEST_P(Conformance, TouchTellsWhichBlocksAreThere) {
  Blocks blocks = served_.MakeBlocks({1000, 1000});
  EXPECT_THAT(Put(blocks), Each(IsOk()));
  blocks.ids.push_back(BlockId{{9, 9}});
  const std::vector<Status> touched = Await(store_->Touch(space_, blocks.ids, 1, {}));
  ASSERT_EQ(touched.size(), 2u);
  EXPECT_THAT(touched[0], IsOk());
  EXPECT_THAT(touched[1], HasCode(Code::kNotFound));
}

TEST_P(Conformance, AGetPastItsDeadlineIsNotBegun) {
  const Blocks blocks = served_.MakeBlocks({10'000});
  EXPECT_THAT(Put(blocks), Each(IsOk()));
  std::vector<BlockRead> reads(1);
  reads[0] = {.id = blocks.ids[0], .into = Memory(16'384)};
  const auto results = Await(store_->Get(space_, blocks.ids, reads, Instant{1}));
  EXPECT_THAT(results[0].status, HasCode(Code::kDeadline));
}

}  // namespace
}  // namespace cairn::kv
