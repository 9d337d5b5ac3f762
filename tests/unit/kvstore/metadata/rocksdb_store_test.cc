// The RocksDB store, and its simulated twin, keep the one contract of metadata_store.h.
#include "kvstore/metadata/rocksdb_store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <vector>

#include "kvstore/async/gate.h"
#include "tests/sim/memory_metadata.h"
#include "tests/sim/sim_workers.h"
#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using ::cairn::testing::HasCode;
using ::cairn::testing::IsOk;

enum class Which { kRocksDb, kTwin };

class MetadataStoreTest : public ::testing::TestWithParam<Which> {
 protected:
  MetadataStoreTest() : folder_(::testing::TempDir().append("cairn_metadata_").append(Name())) {
    std::filesystem::remove_all(folder_);
    Open();
  }
  ~MetadataStoreTest() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  static std::string Name() {
    std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    for (char& letter : name) letter = letter == '/' ? '_' : letter;
    return name + std::to_string(::testing::UnitTest::GetInstance()->random_seed());
  }
  void Open() {
    store_.reset();
    if (GetParam() == Which::kTwin) {
      store_ = twin_.Open();
      return;
    }
    auto opened = OpenRocksDbStore(folder_, loop_, workers_, memory_);
    ASSERT_THAT(opened, IsOk());
    store_ = std::move(opened).value();
  }
  Status Write(MetadataBatch batch) { return clock_.Await(store_->Write(std::move(batch))); }
  Status Put(const std::string& key, const std::string& value) {
    MetadataBatch batch;
    batch.Put(key, value);
    return Write(std::move(batch));
  }
  std::string Get(const std::string& key) {
    auto value = clock_.Await(store_->Get(key));
    return value.ok() ? value.value() : std::string(CodeName(value.code()));
  }
  std::string Keys(const std::string& prefix, const std::string& after, size_t limit) {
    auto entries = clock_.Await(store_->Scan(prefix, after, limit));
    EXPECT_THAT(entries, IsOk());
    std::string keys;
    for (const MetadataStore::Entry& entry : entries.value()) keys.append(entry.key).append(" ");
    return keys;
  }

  const std::string folder_;
  Loop loop_;
  sim::SimClock clock_{loop_};
  sim::SimWorkers workers_{clock_, 1};
  sim::MemoryMetadata twin_{clock_, {}};
  RocksDbMemory memory_{4 << 20, 2 << 20};
  std::unique_ptr<MetadataStore> store_;
};

TEST_P(MetadataStoreTest, BatchesTakeEffectInOrderAndTogether) {
  MetadataBatch batch;
  batch.Put("a", "1");
  batch.Put("a", "2");
  batch.Put("b", "3");
  batch.Delete("b");
  EXPECT_THAT(Write(std::move(batch)), IsOk());
  EXPECT_EQ(Get("a"), "2");
  EXPECT_EQ(Get("b"), "not found");
}

TEST_P(MetadataStoreTest, ScansByPrefixAfterAKeyUpToALimit) {
  for (const std::string key : {"a", "b1", "b2", "b3", "b\xff", "c"}) {
    ASSERT_THAT(Put(key, "x"), IsOk());
  }
  EXPECT_EQ(Keys("b", "", 10), "b1 b2 b3 b\xff ");
  EXPECT_EQ(Keys("b", "b1", 10), "b2 b3 b\xff ");
  EXPECT_EQ(Keys("b", "b11", 1), "b2 ");
  EXPECT_EQ(Keys("b", "b\xff", 10), "");
  EXPECT_EQ(Keys("d", "", 10), "");
  EXPECT_EQ(Keys("", "", 10), "a b1 b2 b3 b\xff c ");
}

TEST_P(MetadataStoreTest, KeysAndValuesAreAnyBytes) {
  const std::string key("\0\xff\0k", 4);
  const std::string value(5000, '\0');
  ASSERT_THAT(Put(key, value), IsOk());
  EXPECT_EQ(Get(key), value);
  EXPECT_EQ(Get(std::string("\0\xff\0", 3)), "not found");
}

TEST_P(MetadataStoreTest, RemembersAcrossRestarts) {
  ASSERT_THAT(Put("a", "1"), IsOk());
  ASSERT_THAT(clock_.Await(store_->Sync()), IsOk());
  ASSERT_THAT(Put("b", "2"), IsOk());
  Open();
  EXPECT_EQ(Get("a"), "1");
  EXPECT_EQ(Get("b"), "2");
}

INSTANTIATE_TEST_SUITE_P(, MetadataStoreTest, ::testing::Values(Which::kRocksDb, Which::kTwin),
                         [](const auto& which) {
                           return which.param == Which::kRocksDb ? "RocksDb" : "Twin";
                         });

class RocksDbStoreTest : public MetadataStoreTest {};

TEST_P(RocksDbStoreTest, ASecondOpenerIsToldWhoIsInTheWay) {
  auto second = OpenRocksDbStore(folder_, loop_, workers_, memory_);
  EXPECT_THAT(second, HasCode(Code::kConflict));
  EXPECT_NE(second.status().message().find(folder_), std::string::npos);
}

// Whatever is missing or garbled among its files, the answer is "corrupt: rebuild", or the data.
TEST_P(RocksDbStoreTest, DamagedFilesAreCorruptAndARemovedFolderStartsAnew) {
  for (int i = 0; i < 100; ++i) ASSERT_THAT(Put(std::to_string(i), "v"), IsOk());
  store_.reset();
  for (const auto& file : std::filesystem::directory_iterator(folder_)) {
    if (file.path().filename().string().rfind("MANIFEST", 0) != 0) continue;
    std::ofstream(file.path(), std::ios::binary | std::ios::trunc) << "not a manifest";
  }
  EXPECT_THAT(OpenRocksDbStore(folder_, loop_, workers_, memory_), HasCode(Code::kCorrupt));
  std::filesystem::remove(folder_ + "/CURRENT");
  std::ofstream(folder_ + "/CURRENT") << "MANIFEST-000999\n";
  EXPECT_THAT(OpenRocksDbStore(folder_, loop_, workers_, memory_), HasCode(Code::kCorrupt));
  std::filesystem::remove_all(folder_);
  Open();
  EXPECT_EQ(Get("k1"), "not found");
}

TEST_P(RocksDbStoreTest, AFolderThatCannotBeMadeIsUnavailable) {
  std::ofstream(folder_ + ".file") << "in the way";
  const auto opened = OpenRocksDbStore(folder_ + ".file/db", loop_, workers_, memory_);
  EXPECT_THAT(opened, HasCode(Code::kUnavailable));
  std::filesystem::remove(folder_ + ".file");
}

// Files may not grow beyond `bytes` while it lives, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

TEST_P(RocksDbStoreTest, AfterAFailureItIsOpenedAnewAndNothingIsLost) {
  const std::string value(1000, 'v');
  int written = 0;
  for (; written < 50; ++written) ASSERT_THAT(Put(std::to_string(written), value), IsOk());
  {
    const FileSizeLimit limit(60'000);
    for (; Put(std::to_string(written), value).ok(); ++written) ASSERT_LT(written, 100);
    // Neither a sync nor another write touches the log that has failed; no new one can be made.
    const FileSizeLimit nothing(10);
    EXPECT_FALSE(clock_.Await(store_->Sync()).ok());
    EXPECT_FALSE(Put("later", value).ok());
    EXPECT_FALSE(clock_.Await(store_->Sync()).ok());
    EXPECT_EQ(Get("0"), value);  // It still serves reads.
  }
  EXPECT_THAT(clock_.Await(store_->Sync()), IsOk());
  ASSERT_THAT(Put("at last", value), IsOk());
  for (int restart = 0; restart < 2; ++restart) {
    for (int i = 0; i < written; ++i) EXPECT_EQ(Get(std::to_string(i)), value) << i;
    EXPECT_EQ(Get("at last"), value);
    Open();
  }
}

Task<void> PutAs(MetadataStore& store, int n, std::vector<int>& done) {
  MetadataBatch batch;
  batch.Put("same", std::to_string(n));
  batch.Put(std::to_string(n), "v");
  const Status written = co_await store.Write(std::move(batch));
  EXPECT_THAT(written, IsOk());
  if (n % 7 == 0) {
    const Status synced = co_await store.Sync();
    EXPECT_THAT(synced, IsOk());
  }
  done.push_back(n);
}

TEST_P(MetadataStoreTest, ManyAtOnceTakeEffectInTheOrderOfTheCalls) {
  std::vector<int> done;
  Gate gate(loop_);
  for (int n = 0; n < 200; ++n) gate.Hold(PutAs(*store_, n, done));
  clock_.Await(gate.Close());
  EXPECT_EQ(done.size(), 200u);
  EXPECT_EQ(Get("same"), "199");
  for (int n = 0; n < 200; ++n) EXPECT_EQ(Get(std::to_string(n)), "v");
}

INSTANTIATE_TEST_SUITE_P(, RocksDbStoreTest, ::testing::Values(Which::kRocksDb),
                         [](const auto&) { return "RocksDb"; });

}  // namespace
}  // namespace cairn::kv
