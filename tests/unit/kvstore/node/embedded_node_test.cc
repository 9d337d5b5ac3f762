// A store on a real file system: folders, locks, sizes, restarts.
#include "kvstore/node/embedded/embedded_node.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <optional>
#include <string>

#include "kvstore/base/random.h"
#include "kvstore/node/embedded/data_dir.h"
#include "tests/support/poller_from_environment.h"
#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

namespace fs = std::filesystem;
using ::testing::Each;
using testing::HasCode;
using ::testing::HasSubstr;
using testing::IsOk;

class KeptLog final : public Log {
 public:
  void Write(LogLevel, std::string_view message) override {
    const std::lock_guard lock(mutex_);
    text_.append(message).append("\n");
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

class EmbeddedNodeTest : public ::testing::Test {
 protected:
  EmbeddedNodeTest() {
    std::string name = ::testing::TempDir() + "cairn-XXXXXX";
    dir_ = ::mkdtemp(name.data());
    options_.data_dir = dir_ + "/data";
    options_.target_bytes = 64 * kMiB;
    options_.poller = PollerFromEnvironment();
    chain_.resize(4);
    Random random(3);
    for (size_t i = 0; i < chain_.size(); ++i) {
      chain_[i] = BlockId{{7, i + 1}};
      bytes_.emplace_back(300'000);
      random.Fill(bytes_.back().span());
    }
  }
  ~EmbeddedNodeTest() override {
    node_.reset();
    fs::remove_all(dir_);
  }

  Status Start() {
    auto node = EmbeddedNode::Start(options_, log_);
    if (!node.ok()) return node.status();
    node_ = std::move(node).value();
    space_ = AttachAndWait(node_->client(), {.name = "tests", .fingerprint = "f"}).value();
    return Status();
  }
  std::vector<Status> Put() {
    ChainPut put{.space = space_, .chain = chain_};
    for (size_t i = 0; i < chain_.size(); ++i) put.blocks.push_back({chain_[i], bytes_[i].span()});
    std::promise<std::vector<Status>> done;
    node_->client().Put(put, [&](std::vector<Status> outcomes) { done.set_value(outcomes); });
    return done.get_future().get();
  }
  void ExpectReadable() {
    std::vector<Bytes> rooms;
    std::vector<BlockRead> reads;
    for (size_t i = 0; i < chain_.size(); ++i) {
      rooms.emplace_back(300'000);
      reads.push_back({chain_[i], rooms.back().sectors()});
    }
    std::promise<std::vector<BlockReadResult>> done;
    node_->client().Get(space_, chain_, reads, kNever,
                        [&](std::vector<BlockReadResult> got) { done.set_value(got); });
    const auto results = done.get_future().get();
    for (size_t i = 0; i < chain_.size(); ++i) {
      ASSERT_THAT(results[i].status, IsOk()) << i;
      EXPECT_EQ(AsText(rooms[i].span()), AsText(bytes_[i].span())) << i;
    }
  }

  std::string dir_;
  EmbeddedOptions options_;
  KeptLog log_;
  std::unique_ptr<EmbeddedNode> node_;
  NamespaceId space_;
  std::vector<BlockId> chain_;
  std::vector<Bytes> bytes_;
};

TEST_F(EmbeddedNodeTest, KeepsBlocksThroughARestart) {
  ASSERT_THAT(Start(), IsOk());
  EXPECT_THAT(Put(), Each(IsOk()));
  ExpectReadable();
  EXPECT_GT(node_->stats().memory_bytes, 0u);
  EXPECT_THAT(node_->Stop(), IsOk());
  node_.reset();
  ASSERT_THAT(Start(), IsOk());
  ExpectReadable();
  EXPECT_EQ(node_->stats().degraded_reads, 0u);
}

TEST_F(EmbeddedNodeTest, DeletedTargetsAreMadeAnewAndNothingIsLost) {
  ASSERT_THAT(Start(), IsOk());
  EXPECT_THAT(Put(), Each(IsOk()));
  node_.reset();
  fs::remove_all(options_.data_dir + "/target-02");
  fs::remove_all(options_.data_dir + "/target-09");
  ASSERT_THAT(Start(), IsOk());
  EXPECT_THAT(log_.text(), HasSubstr("target-02 is missing"));
  ExpectReadable();
}

TEST_F(EmbeddedNodeTest, ATargetBeyondUseIsSetAside) {
  ASSERT_THAT(Start(), IsOk());
  EXPECT_THAT(Put(), Each(IsOk()));
  node_.reset();
  std::fstream file(options_.data_dir + "/target-04/segments", std::ios::in | std::ios::out);
  const std::string junk(64 * 1024, 'x');
  file.write(junk.data(), static_cast<std::streamsize>(junk.size()));
  file.close();
  ASSERT_THAT(Start(), IsOk());
  EXPECT_TRUE(fs::exists(options_.data_dir + "/target-04.broken-1/segments"));
  EXPECT_THAT(log_.text(), HasSubstr("set aside"));
  ExpectReadable();
}

TEST_F(EmbeddedNodeTest, ADamagedIndexIsRebuilt) {
  ASSERT_THAT(Start(), IsOk());
  EXPECT_THAT(Put(), Each(IsOk()));
  node_.reset();
  for (uint32_t i = 0; i < options_.targets; ++i) {
    const std::string index =
        options_.data_dir + "/" + (i < 10 ? "target-0" : "target-") + std::to_string(i) + "/index";
    std::ofstream(index + "/CURRENT", std::ios::trunc) << "junk";
  }
  ASSERT_THAT(Start(), IsOk());
  ExpectReadable();
}

TEST_F(EmbeddedNodeTest, ASecondUserOfTheFolderIsRefused) {
  ASSERT_THAT(Start(), IsOk());
  const auto second = EmbeddedNode::Start(options_, log_);
  EXPECT_THAT(second, HasCode(Code::kConflict));
  EXPECT_THAT(second.status().message(), HasSubstr(options_.data_dir));
}

TEST_F(EmbeddedNodeTest, AFolderThatCannotBeMadeIsRefused) {
  std::ofstream(dir_ + "/file") << "not a folder";
  options_.data_dir = dir_ + "/file/data";
  EXPECT_THAT(Start(), HasCode(Code::kInvalid));
}

TEST_F(EmbeddedNodeTest, MoreThanTheFileSystemHasIsRefusedWithNumbers) {
  options_.target_bytes = 1ull << 50;
  const Status status = Start();
  EXPECT_THAT(status, HasCode(Code::kNoSpace));
  EXPECT_THAT(status.message(), HasSubstr("MiB free"));
  EXPECT_FALSE(fs::exists(options_.data_dir + "/target-00"));
}

// A link to a folder stands for a mount: what counts is the file system that it leads to.
TEST_F(EmbeddedNodeTest, SpaceIsAskedOfTheFileSystemOfEachTarget) {
  std::string mount = "/dev/shm/cairn-XXXXXX";
  if (::mkdtemp(mount.data()) == nullptr) GTEST_SKIP() << "no second file system at /dev/shm";
  fs::create_directories(options_.data_dir);
  fs::create_directory_symlink(mount, options_.data_dir + "/target-03");
  options_.target_bytes = 1ull << 50;
  const std::vector<uint32_t> on_the_mount = {3};
  const auto dir = DataDir::Open(options_.data_dir);
  ASSERT_THAT(dir, IsOk());
  const Status status = dir.value()->CheckFree(on_the_mount, options_.target_bytes);
  EXPECT_THAT(status, HasCode(Code::kNoSpace));
  EXPECT_THAT(status.message(), HasSubstr("target-03 need"));
  fs::remove_all(mount);
}

TEST_F(EmbeddedNodeTest, ConfiguredNonsenseIsRefused) {
  options_.target_bytes = 1000;
  EXPECT_THAT(Start(), HasCode(Code::kInvalid));
}

// Puts a block through the node when it starts, and reads it back when it stops.
class BlockService final : public EmbeddedService {
 public:
  explicit BlockService(Status outcome) : outcome_(std::move(outcome)) {}

  Status Start(const Parts& parts) override {
    parts_.emplace(parts);
    KV_ASSIGN_OR_RETURN(space_, parts.poller.Await(parts.node.store().Attach(
                                    {.name = "service", .fingerprint = "f"})));
    bytes_.assign(5000, 7);
    ChainPut put{.space = space_, .chain = {BlockId{{1, 1}}}};
    put.blocks.push_back({BlockId{{1, 1}}, bytes_});
    for (const Status& stored : parts.poller.Await(parts.node.store().Put(std::move(put)))) {
      KV_RETURN_IF_ERROR(stored);
    }
    return outcome_;
  }

  Task<void> Stop() override {
    ++stops_;
    std::vector<uint8_t> room(5000);
    std::vector<BlockRead> reads;
    reads.push_back({BlockId{{1, 1}}, room});
    std::vector<BlockId> chain = {BlockId{{1, 1}}};
    const auto results =
        co_await parts_->node.store().Get(space_, std::move(chain), std::move(reads), kNever);
    read_back_ = results[0].status.ok() && room == bytes_;
  }

  int stops() const { return stops_; }
  bool read_back() const { return read_back_; }

 private:
  const Status outcome_;
  std::optional<Parts> parts_;
  NamespaceId space_;
  std::vector<uint8_t> bytes_;
  int stops_ = 0;
  bool read_back_ = false;
};

TEST_F(EmbeddedNodeTest, AServiceLivesWhileTheStoreServes) {
  BlockService service{Status()};
  auto node = EmbeddedNode::Start(options_, log_, &service);
  ASSERT_THAT(node, IsOk());
  EXPECT_EQ(service.stops(), 0);
  EXPECT_THAT(node.value()->Stop(), IsOk());
  EXPECT_EQ(service.stops(), 1);
  EXPECT_TRUE(service.read_back());
}

TEST_F(EmbeddedNodeTest, AServiceThatDoesNotStartEndsTheStore) {
  BlockService service{Status(Code::kConflict, "the socket is taken")};
  EXPECT_THAT(EmbeddedNode::Start(options_, log_, &service), HasCode(Code::kConflict));
  EXPECT_EQ(service.stops(), 0);
  EXPECT_THAT(Start(), IsOk());  // The folder is free again.
}

}  // namespace
}  // namespace cairn::kv
