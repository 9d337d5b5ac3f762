// The C interface against a server on a thread of its own: what a program in C would see.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "kvstore/capi/cairn.h"
#include "tests/unit/kvstore/serve/served_store.h"

namespace cairn::kv {
namespace {

class Capi : public ::testing::Test {
 protected:
  Capi() {
    served_.StartServer();
    address_ = served_.UnixAddress();
    tcp_address_ = served_.TcpAddress();
    thread_ = std::thread([this] { served_.Until([this] { return stop_.load(); }); });
    queue_ = cairn_queue_new();
  }
  ~Capi() override {
    cairn_close(store_);
    cairn_queue_free(queue_);
    stop_ = true;
    thread_.join();
  }

  void Connect(const std::string& address) {
    cairn_connect_options options;
    CAIRN_INIT(&options);
    options.address = address.c_str();
    ASSERT_EQ(cairn_connect(&options, &store_, message_, sizeof(message_)), CAIRN_OK) << message_;
    cairn_namespace_options space;
    CAIRN_INIT(&space);
    space.name = "c";
    ASSERT_EQ(cairn_attach(store_, &space, &space_, message_, sizeof(message_)), CAIRN_OK)
        << message_;
  }
  // Of the one request in flight.
  cairn_completion Finish(uint64_t tag) {
    cairn_completion completion{};
    EXPECT_EQ(cairn_queue_take(queue_, &completion, 1, 60'000), 1u);
    EXPECT_EQ(completion.tag, tag);
    return completion;
  }
  static std::vector<cairn_id> Ids(const std::string& name, size_t count) {
    std::vector<cairn_id> ids;
    for (size_t i = 0; i < count; ++i) {
      const std::string key = std::string(name).append(std::to_string(i));
      ids.push_back(cairn_block_id(key.data(), key.size()));
    }
    return ids;
  }
  void Put(const cairn_chain& chain, const std::vector<Bytes>& blocks) {
    std::vector<cairn_write> writes(blocks.size());
    for (size_t i = 0; i < blocks.size(); ++i) {
      writes[i].bytes = blocks[i].data();
      writes[i].size = blocks[i].size();
    }
    ASSERT_EQ(cairn_submit_put(store_, &chain, 0, writes.data(), writes.size(), nullptr, queue_, 1),
              CAIRN_OK);
    ASSERT_EQ(Finish(1).code, CAIRN_OK);
    for (const cairn_write& write : writes) EXPECT_EQ(write.code, CAIRN_OK);
  }
  void PutAndGetScattered();

  ServedStore served_;
  std::string address_, tcp_address_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
  cairn_store* store_ = nullptr;
  cairn_queue* queue_ = nullptr;
  cairn_id space_{};
  char message_[CAIRN_MESSAGE_MAX] = "";
};

std::vector<Bytes> RandomBlocks(const std::vector<size_t>& sizes) {
  Random random(5);
  std::vector<Bytes> blocks;
  for (const size_t size : sizes) {
    blocks.emplace_back(size);
    random.Fill(blocks.back().span());
  }
  return blocks;
}

void Capi::PutAndGetScattered() {
  const std::vector<Bytes> blocks = RandomBlocks({300'000, 1, 4096});
  const std::vector<cairn_id> ids = Ids("scatter", 4);
  const cairn_chain chain{space_, ids.data(), ids.size()};
  Put({space_, ids.data(), 3}, blocks);

  cairn_lookup lookup;
  CAIRN_INIT(&lookup);
  lookup.chain = chain;
  uint32_t sizes[4] = {};
  lookup.sizes = sizes;
  ASSERT_EQ(cairn_submit_lookup(store_, &lookup, queue_, 2), CAIRN_OK);
  ASSERT_EQ(Finish(2).code, CAIRN_OK);
  EXPECT_EQ(lookup.blocks, 3u);
  EXPECT_EQ(lookup.miss, 1u);  // Absent.
  EXPECT_THAT(sizes, ::testing::ElementsAre(300'000, 1, 4096, 0));

  // The first block in three unequal parts, the last one is not there.
  Bytes first(300'000);
  const cairn_segment parts[] = {{first.data(), 17}, {first.data() + 17, 200'000},
                                 {first.data() + 200'017, 99'983}};
  Bytes second(10);
  Bytes fourth(10);
  cairn_read reads[3] = {};
  reads[0].segments = parts;
  reads[0].segment_count = 3;
  reads[1].chain_index = 1;
  reads[1].into = second.data();
  reads[1].into_size = second.size();
  reads[2].chain_index = 3;
  reads[2].into = fourth.data();
  reads[2].into_size = fourth.size();
  ASSERT_EQ(cairn_submit_get(store_, &chain, reads, 3, 60'000, queue_, 3), CAIRN_OK);
  ASSERT_EQ(Finish(3).code, CAIRN_OK);  // A miss is no failure of the request.
  EXPECT_EQ(reads[0].code, CAIRN_OK);
  EXPECT_EQ(reads[0].size, 300'000u);
  EXPECT_EQ(memcmp(first.data(), blocks[0].data(), 300'000), 0);
  EXPECT_EQ(reads[1].code, CAIRN_OK);
  EXPECT_EQ(reads[1].size, 1u);
  EXPECT_EQ(second.data()[0], blocks[1].data()[0]);
  EXPECT_EQ(reads[2].code, CAIRN_NOT_FOUND);
}

TEST_F(Capi, PutsAndGetsScatteredMemoryOverAUnixSocket) {
  Connect(address_);
  PutAndGetScattered();
}

TEST_F(Capi, PutsAndGetsScatteredMemoryOverTcp) {
  Connect(tcp_address_);
  PutAndGetScattered();
}

TEST_F(Capi, LooksUpEachBlockDeletesAndTouches) {
  Connect(address_);
  const std::vector<cairn_id> ids = Ids("each", 2);
  const cairn_chain chain{space_, ids.data(), ids.size()};
  Put({space_, ids.data(), 1}, RandomBlocks({5000}));
  uint32_t sizes[2] = {7, 7};
  cairn_lookup_each lookup;
  CAIRN_INIT(&lookup);
  lookup.chain = chain;
  lookup.sizes = sizes;
  ASSERT_EQ(cairn_submit_lookup_each(store_, &lookup, queue_, 4), CAIRN_OK);
  ASSERT_EQ(Finish(4).code, CAIRN_OK);
  EXPECT_THAT(sizes, ::testing::ElementsAre(5000, 0));
  cairn_code codes[2] = {CAIRN_CONFLICT, CAIRN_CONFLICT};
  ASSERT_EQ(cairn_submit_touch(store_, &chain, 0, 0, codes, queue_, 5), CAIRN_OK);
  ASSERT_EQ(Finish(5).code, CAIRN_OK);
  EXPECT_THAT(codes, ::testing::ElementsAre(CAIRN_OK, CAIRN_NOT_FOUND));
  ASSERT_EQ(cairn_submit_delete(store_, &chain, 0, queue_, 6), CAIRN_OK);
  ASSERT_EQ(Finish(6).code, CAIRN_OK);
  ASSERT_EQ(cairn_submit_lookup_each(store_, &lookup, queue_, 7), CAIRN_OK);
  ASSERT_EQ(Finish(7).code, CAIRN_OK);
  EXPECT_EQ(sizes[0], 0u);
}

TEST_F(Capi, LeasesAreGrantedRenewedAndReleased) {
  Connect(address_);
  const std::vector<cairn_id> ids = Ids("lease", 1);
  const cairn_chain chain{space_, ids.data(), ids.size()};
  Put(chain, RandomBlocks({5000}));
  cairn_lookup lookup;
  CAIRN_INIT(&lookup);
  lookup.chain = chain;
  lookup.lease_ms = 60'000;
  ASSERT_EQ(cairn_submit_lookup(store_, &lookup, queue_, 2), CAIRN_OK);
  ASSERT_EQ(Finish(2).code, CAIRN_OK);
  ASSERT_NE(lookup.lease, 0u);
  const uint64_t leases[] = {lookup.lease, lookup.lease + 1};
  cairn_code codes[2] = {};
  ASSERT_EQ(cairn_submit_renew(store_, leases, 2, 60'000, codes, queue_, 3), CAIRN_OK);
  ASSERT_EQ(Finish(3).code, CAIRN_OK);
  EXPECT_THAT(codes, ::testing::ElementsAre(CAIRN_OK, CAIRN_NOT_FOUND));
  ASSERT_EQ(cairn_submit_release(store_, leases, 1, queue_, 4), CAIRN_OK);
  ASSERT_EQ(Finish(4).code, CAIRN_OK);
  ASSERT_EQ(cairn_submit_renew(store_, leases, 1, 60'000, codes, queue_, 5), CAIRN_OK);
  ASSERT_EQ(Finish(5).code, CAIRN_OK);
  EXPECT_EQ(codes[0], CAIRN_NOT_FOUND);
}

TEST_F(Capi, TheQueueIsReadableWhileCompletionsWait) {
  Connect(address_);
  const std::vector<cairn_id> ids = Ids("many", 1);
  pollfd waiting{cairn_queue_fd(queue_), POLLIN, 0};
  EXPECT_EQ(poll(&waiting, 1, 0), 0);
  constexpr uint64_t kRequests = 64;
  std::vector<cairn_lookup> lookups(kRequests);
  for (uint64_t i = 0; i < kRequests; ++i) {
    CAIRN_INIT(&lookups[i]);
    lookups[i].chain = {space_, ids.data(), 1};
    ASSERT_EQ(cairn_submit_lookup(store_, &lookups[i], queue_, i), CAIRN_OK);
  }
  std::vector<bool> seen(kRequests);
  size_t taken = 0;
  while (taken < kRequests) {
    ASSERT_EQ(poll(&waiting, 1, 60'000), 1);
    cairn_completion completions[10];
    const size_t count = cairn_queue_take(queue_, completions, 10, 0);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_FALSE(seen[completions[i].tag]);
      seen[completions[i].tag] = true;
    }
    taken += count;
  }
  EXPECT_EQ(poll(&waiting, 1, 0), 0);
  cairn_completion none;
  EXPECT_EQ(cairn_queue_take(queue_, &none, 1, 0), 0u);
}

TEST_F(Capi, SaysWhatIsWrong) {
  cairn_connect_options options;
  CAIRN_INIT(&options);
  options.address = "unix:/nowhere/cairn.sock";
  cairn_store* store = nullptr;
  EXPECT_EQ(cairn_connect(&options, &store, message_, sizeof(message_)), CAIRN_UNAVAILABLE);
  EXPECT_THAT(message_, ::testing::HasSubstr("/nowhere/cairn.sock"));
  EXPECT_EQ(store, nullptr);
  options.struct_size = 0;
  EXPECT_EQ(cairn_connect(&options, &store, message_, 8), CAIRN_INVALID);
  EXPECT_EQ(strlen(message_), 7u);

  Connect(address_);
  const std::vector<cairn_id> ids = Ids("bad", 1);
  const cairn_chain chain{space_, ids.data(), 1};
  cairn_read read{};
  EXPECT_EQ(cairn_submit_get(store_, &chain, &read, 1, 0, queue_, 1), CAIRN_INVALID);  // No memory.
  read.chain_index = 1;
  read.into = message_;
  EXPECT_EQ(cairn_submit_get(store_, &chain, &read, 1, 0, queue_, 1), CAIRN_INVALID);
  cairn_write write{};
  write.bytes = message_;
  write.size = 1;
  EXPECT_EQ(cairn_submit_put(store_, &chain, 1, &write, 1, nullptr, queue_, 1), CAIRN_INVALID);
  cairn_lookup lookup{};
  lookup.chain = chain;
  EXPECT_EQ(cairn_submit_lookup(store_, &lookup, queue_, 1), CAIRN_INVALID);  // No struct_size.
  // An unknown namespace is found out by the server.
  CAIRN_INIT(&lookup);
  lookup.chain = {cairn_id{}, ids.data(), 1};
  ASSERT_EQ(cairn_submit_lookup(store_, &lookup, queue_, 2), CAIRN_OK);
  EXPECT_EQ(Finish(2).code, CAIRN_INVALID);
  EXPECT_STREQ(cairn_code_name(CAIRN_NOT_FOUND), "not found");
  EXPECT_STREQ(cairn_code_name(99), "unknown");
}

TEST_F(Capi, ACallerOfAnOlderHeaderIsServed) {
  Connect(address_);
  // As if the token and all behind it had not been thought of yet: what lies there is not read.
  cairn_namespace_options options;
  memset(&options, 0x5a, sizeof(options));
  memset(&options, 0, offsetof(cairn_namespace_options, token));
  options.struct_size = offsetof(cairn_namespace_options, token);
  options.name = "older";
  cairn_id space{};
  EXPECT_EQ(cairn_attach(store_, &options, &space, message_, sizeof(message_)), CAIRN_OK)
      << message_;
}

TEST_F(Capi, TheExampleRuns) {
  const std::string command = std::string(CAIRN_EXAMPLE).append(" ").append(address_);
  EXPECT_EQ(std::system(command.c_str()), 0);
  const std::string over_tcp = std::string(CAIRN_EXAMPLE).append(" ").append(tcp_address_);
  EXPECT_EQ(std::system(over_tcp.c_str()), 0);
}

}  // namespace
}  // namespace cairn::kv
