// A replay against a store that lies, and a store in another day.
#include "tools/replay/replay.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>

#include "kvstore/node/embedded/embedded_node.h"
#include "tests/support/status_matchers.h"
#include "tools/replay/block_content.h"
#include "tools/replay/replay_command.h"

namespace cairn::tools {
namespace {

namespace fs = std::filesystem;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::IsOk;

constexpr uint32_t kBlockBytes = 512 * 16;  // 512 tokens of 16 bytes.

class Quiet final : public kv::Log {
 public:
  void Write(kv::LogLevel, std::string_view) override {}
};

class ReplayTest : public ::testing::Test {
 protected:
  ReplayTest() {
    std::string name = ::testing::TempDir() + "cairn-XXXXXX";
    dir_ = ::mkdtemp(name.data());
    options_.data_dir = dir_ + "/data";
    options_.target_bytes = 64 * kv::kMiB;
    std::ofstream(trace()) << R"({"timestamp":0,"input_length":1024,"output_length":1,)"
                           << R"("hash_ids":[11,12]})" << "\n";
  }
  ~ReplayTest() override { fs::remove_all(dir_); }

  std::string trace() const { return dir_ + "/trace.jsonl"; }
  kv::NamespaceId Attach(kv::Client& client, uint32_t ttl_seconds) {
    return kv::AttachAndWait(
               client,
               {.name = "replay", .fingerprint = "replay", .ttl_seconds = ttl_seconds})
        .value();
  }
  std::vector<kv::Status> Put(kv::Client& client, kv::NamespaceId space, uint64_t id,
                              kv::ByteSpan bytes) {
    kv::ChainPut put{.space = space};
    put.chain = {kv::BlockId{{0, id}}};
    put.blocks = {{put.chain[0], bytes}};
    std::promise<std::vector<kv::Status>> promise;
    client.Put(std::move(put), [&](std::vector<kv::Status> outcomes) {
      promise.set_value(std::move(outcomes));
    });
    return promise.get_future().get();
  }
  kv::ChainHit Lookup(kv::Client& client, kv::NamespaceId space, uint64_t id) {
    std::promise<kv::Result<kv::ChainHit>> promise;
    client.Lookup(space, {kv::BlockId{{0, id}}},
                  [&](kv::Result<kv::ChainHit> hit) { promise.set_value(std::move(hit)); });
    return promise.get_future().get().value();
  }
  // Stores block 11 with `bytes` in a folder that the next replay takes for empty.
  void Prepare(kv::ByteSpan bytes) {
    auto node = kv::EmbeddedNode::Start(options_, log_).value();
    const kv::NamespaceId space = Attach(node->client(), 10 * 365 * 24 * 3600u);
    EXPECT_THAT(Put(node->client(), space, 11, bytes), Each(IsOk()));
    EXPECT_THAT(node->Stop(), IsOk());
    node.reset();
    fs::remove(options_.data_dir + "/lock");
  }
  CommandResult Run() {
    return ReplayCommand({trace(), "--data", options_.data_dir, "--capacity", "768 MiB",
                          "--bytes-per-token", "16"});
  }

  std::string dir_;
  kv::EmbeddedOptions options_;
  Quiet log_;
};

TEST_F(ReplayTest, RightBytesPass) {
  kv::Bytes bytes(kBlockBytes);
  FillBlock(11, bytes.span());
  Prepare(bytes.span());
  const CommandResult result = Run();
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("512"));  // Hit tokens.
}

TEST_F(ReplayTest, AWrongByteFailsTheCommandAndIsNamed) {
  kv::Bytes bytes(kBlockBytes);
  FillBlock(11, bytes.span());
  bytes.span()[4321] ^= 1;
  Prepare(bytes.span());
  const CommandResult result = Run();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, HasSubstr("block 11: byte 4321 is wrong"));
}

TEST_F(ReplayTest, AWrongSizeFailsTheCommand) {
  kv::Bytes bytes(kBlockBytes - 1);
  FillBlock(11, bytes.span());
  Prepare(bytes.span());
  const CommandResult result = Run();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, HasSubstr("has 8191 bytes, not 8192"));
}

TEST_F(ReplayTest, RefusesAFolderInUseAndImpossibleShares) {
  fs::create_directory(options_.data_dir);
  std::ofstream(options_.data_dir + "/lock") << "";
  EXPECT_THAT(Run().errors, HasSubstr("replay into an empty folder"));
  fs::remove(options_.data_dir + "/lock");
  std::ofstream(options_.data_dir + "/thesis.txt") << "mine";
  EXPECT_THAT(Run().errors, HasSubstr("holds thesis.txt"));
  EXPECT_EQ(std::distance(fs::directory_iterator(options_.data_dir), {}), 1);
  const CommandResult result =
      ReplayCommand({trace(), "--data", dir_ + "/other", "--read-share", "0"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("above 0"));
}

TEST_F(ReplayTest, RefusesSizesThatNoStoreHas) {
  for (const char* capacity : {"-1 GiB", "1e30TB", "0 B", "700 MiB", "2 PiB"}) {
    const CommandResult result = ReplayCommand({trace(), "--predict-only", "--capacity", capacity});
    EXPECT_EQ(result.exit_code, 2) << capacity;
    EXPECT_THAT(result.errors, HasSubstr("the capacity is 768 MiB")) << capacity;
  }
  for (const char* bytes : {"nan", "inf", "-1", "0"}) {
    const CommandResult result =
        ReplayCommand({trace(), "--predict-only", "--bytes-per-token", bytes});
    EXPECT_EQ(result.exit_code, 2) << bytes;
    EXPECT_THAT(result.errors, HasSubstr("above zero")) << bytes;
  }
}

// The store's calendar is what unix_now says: expiry follows it.
TEST_F(ReplayTest, TheCalendarMayBeAnotherDays) {
  std::atomic<int64_t> now{1'700'000'000'000};
  options_.unix_now = [&now] { return kv::UnixMillis{now.load()}; };
  auto node = kv::EmbeddedNode::Start(options_, log_).value();
  const kv::NamespaceId space = Attach(node->client(), 100);
  kv::Bytes bytes(kBlockBytes);
  EXPECT_THAT(Put(node->client(), space, 11, bytes.span()), Each(IsOk()));
  EXPECT_THAT(Put(node->client(), space, 12, bytes.span()), Each(IsOk()));
  now += 99'000;
  EXPECT_EQ(Lookup(node->client(), space, 11).blocks, 1u);
  now += 2'000;  // 11 was refreshed, 12 was not.
  EXPECT_EQ(Lookup(node->client(), space, 11).blocks, 1u);
  EXPECT_EQ(Lookup(node->client(), space, 12).blocks, 0u);
  EXPECT_THAT(node->Stop(), IsOk());
}

TEST(BlockContent, TheFirstWrongByteIsFoundAnywhere) {
  kv::Bytes bytes(1001);
  FillBlock(5, bytes.span());
  EXPECT_EQ(FirstWrongByte(5, bytes.span()), std::nullopt);
  EXPECT_EQ(FirstWrongByte(6, bytes.span()), 0u);
  for (const size_t at : {0, 1, 7, 8, 500, 999, 1000}) {
    bytes.span()[at] ^= 0x80;
    EXPECT_EQ(FirstWrongByte(5, bytes.span()), at);
    bytes.span()[at] ^= 0x80;
  }
}

}  // namespace
}  // namespace cairn::tools
