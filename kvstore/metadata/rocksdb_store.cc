// RocksDB 7.8 behind the narrow interface: a write-ahead log without sync, and a sync on demand.
#include "kvstore/metadata/rocksdb_store.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <rocksdb/write_buffer_manager.h>

#include <cstdarg>
#include <memory>
#include <shared_mutex>
#include <string>
#include <utility>

#include "kvstore/async/event.h"
#include "kvstore/async/semaphore.h"
#include "kvstore/base/bytes.h"
#include "kvstore/base/units.h"

namespace cairn::kv {

struct RocksDbMemory::Parts {
  std::shared_ptr<rocksdb::Cache> cache;
  std::shared_ptr<rocksdb::WriteBufferManager> memtables;
};

RocksDbMemory::RocksDbMemory(uint64_t cache_bytes, uint64_t memtable_bytes)
    : parts_(std::make_unique<Parts>()) {
  parts_->cache = rocksdb::NewLRUCache(cache_bytes);
  parts_->memtables =
      std::make_shared<rocksdb::WriteBufferManager>(memtable_bytes, parts_->cache);
}
RocksDbMemory::~RocksDbMemory() = default;

namespace {

// For the log of a database, its tables and its memtables on their way.
constexpr uint64_t kRoomToOpen = 16 * kMiB;

Status ToStatus(const rocksdb::Status& status) {
  if (status.ok()) return Status();
  if (status.IsNotFound()) return Status(Code::kNotFound);
  if (status.IsCorruption()) return Status(Code::kCorrupt, status.ToString());
  if (status.IsNoSpace()) return Status(Code::kNoSpace, status.ToString());
  return Status(Code::kUnavailable, status.ToString());
}

// RocksDB's own log file would be one more that must not fail: on a full disk its next line aborts
// the process. What goes wrong comes back as a status anyway.
class NoInfoLog final : public rocksdb::Logger {
 public:
  NoInfoLog() : Logger(rocksdb::InfoLogLevel::FATAL_LEVEL) {}
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

rocksdb::Options OptionsFor(const RocksDbMemory::Parts& memory) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = memory.cache;
  table.cache_index_and_filter_blocks = true;  // They count against the cache too.
  table.filter_policy.reset(rocksdb::NewRibbonFilterPolicy(10));
  table.format_version = 5;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.write_buffer_manager = memory.memtables;
  options.write_buffer_size = 4 << 20;
  options.max_open_files = 64;
  options.max_background_jobs = 2;
  options.paranoid_checks = true;
  options.info_log = std::make_shared<NoInfoLog>();
  return options;
}

Result<std::unique_ptr<rocksdb::DB>> OpenDatabase(const std::string& path,
                                                  const RocksDbMemory& memory) {
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(OptionsFor(memory.parts()), path, &opened);
  if (status.ok()) return std::unique_ptr<rocksdb::DB>(opened);
  const std::string words = path + ": " + status.ToString();
  if (words.find("lock ") != std::string::npos) {
    return Status(Code::kConflict, path + " is in use by another process");
  }
  if (status.IsNoSpace()) return Status(Code::kNoSpace, words);
  // A database that lacks files says so in several ways; all of them mean: rebuild it.
  const bool damaged =
      status.IsCorruption() || status.IsInvalidArgument() || status.IsPathNotFound();
  return Status(damaged ? Code::kCorrupt : Code::kUnavailable, words);
}

// Whether it is worth while to open a failed database again; until then it still serves reads.
Status CheckWritable(const std::string& folder) {
  rocksdb::Env* env = rocksdb::Env::Default();
  uint64_t room = 0;
  const rocksdb::Status asked = env->GetFreeSpace(folder, &room);
  if (asked.ok() && room < kRoomToOpen) {
    return Status(Code::kNoSpace, folder + ": only " + std::to_string(room) + " bytes are free");
  }
  const std::string path = folder + "/probe";
  std::unique_ptr<rocksdb::WritableFile> file;
  rocksdb::Status status = env->NewWritableFile(path, &file, rocksdb::EnvOptions());
  if (!status.ok()) return ToStatus(status);
  status = file->Append(std::string(kSectorSize, 'p'));
  if (status.ok()) status = file->Sync();
  const rocksdb::Status closed = file->Close();
  (void)env->DeleteFile(path);
  return ToStatus(status.ok() ? closed : status);
}

// Changes go to RocksDB one group at a time: what is asked for while a group is on its way makes up
// the next. So batches keep their order, many syncs cost one, and nothing touches a write-ahead log
// after a failure: RocksDB may abort then. A database that has failed is opened anew by the next
// group that finds its folder writable, which replays its log; until then it only serves reads.
class RocksDbStore final : public MetadataStore {
 public:
  RocksDbStore(std::unique_ptr<rocksdb::DB> db, std::string path, Loop& loop, Workers& workers,
               const RocksDbMemory& memory)
      : path_(std::move(path)),
        loop_(loop),
        workers_(workers),
        memory_(memory),
        one_group_(loop, 1),
        db_(std::move(db)) {}

  Task<Status> Write(MetadataBatch batch) override { return Join(std::move(batch), false); }
  Task<Status> Sync() override { return Join(MetadataBatch(), true); }

  Task<Result<std::string>> Get(std::string key) override {
    rocksdb::Status outcome = rocksdb::Status::Aborted(kClosed);
    std::string value;
    co_await workers_.Run([&] {
      const std::shared_lock lock(mutex_);
      if (db_ != nullptr) outcome = db_->Get(rocksdb::ReadOptions(), key, &value);
    });
    if (!outcome.ok()) co_return ToStatus(outcome);
    co_return value;
  }

  Task<Result<std::vector<Entry>>> Scan(std::string prefix, std::string after,
                                        size_t limit) override {
    rocksdb::Status outcome = rocksdb::Status::Aborted(kClosed);
    std::vector<Entry> entries;
    co_await workers_.Run([&] {
      const std::shared_lock lock(mutex_);
      if (db_ != nullptr) outcome = ScanInto(entries, prefix, after, limit);
    });
    if (!outcome.ok()) co_return ToStatus(outcome);
    co_return entries;
  }

  uint64_t memory_bytes() const override {
    const std::shared_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || db_ == nullptr) return 0;
    uint64_t memtables = 0;
    uint64_t readers = 0;
    db_->GetIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables, &memtables);
    db_->GetIntProperty(rocksdb::DB::Properties::kEstimateTableReadersMem, &readers);
    return memtables + readers;
  }

 private:
  static constexpr const char* kClosed = "the database failed and could not be opened again";

  struct Group {
    explicit Group(Loop& loop) : done(loop) {}
    rocksdb::WriteBatch changes;
    bool sync = false;
    Status outcome;
    Event done;
  };

  Task<Status> Join(MetadataBatch batch, bool sync) {
    const bool first = next_ == nullptr;
    if (first) next_ = std::make_shared<Group>(loop_);
    const std::shared_ptr<Group> group = next_;
    for (const MetadataBatch::Change& change : batch.changes) {
      // Neither can fail on a batch in memory.
      (void)(change.is_delete ? group->changes.Delete(change.key)
                              : group->changes.Put(change.key, change.value));
    }
    group->sync = group->sync || sync;
    if (first) {
      const Semaphore::Permit permit = co_await one_group_.Acquire(1);
      next_ = nullptr;
      co_await workers_.Run([this, &group] { group->outcome = Apply(*group); });
      group->done.Set();
    } else {
      Event& done = group->done;
      co_await done;
    }
    co_return group->outcome;
  }

  // On a worker, never twice at a time.
  Status Apply(Group& group) {
    if (failed_) KV_RETURN_IF_ERROR(OpenAgain());
    rocksdb::Status status;
    if (group.changes.Count() > 0) status = db_->Write(rocksdb::WriteOptions(), &group.changes);
    if (status.ok() && group.sync) status = db_->SyncWAL();
    failed_ = !status.ok();
    return ToStatus(status);
  }

  // Closing a database that has failed may take RocksDB a second: readers do not wait for it.
  Status OpenAgain() {
    KV_RETURN_IF_ERROR(CheckWritable(path_));
    Exchange(nullptr).reset();
    KV_ASSIGN_OR_RETURN(std::unique_ptr<rocksdb::DB> opened, OpenDatabase(path_, memory_));
    Exchange(std::move(opened));
    return Status();
  }

  std::unique_ptr<rocksdb::DB> Exchange(std::unique_ptr<rocksdb::DB> db) {
    const std::unique_lock lock(mutex_);
    return std::exchange(db_, std::move(db));
  }

  rocksdb::Status ScanInto(std::vector<Entry>& entries, const std::string& prefix,
                           const std::string& after, size_t limit) {
    const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(rocksdb::ReadOptions()));
    at->Seek(after < prefix ? prefix : after);
    if (at->Valid() && at->key() == after) at->Next();
    for (; at->Valid() && at->key().starts_with(prefix) && entries.size() < limit; at->Next()) {
      entries.push_back({at->key().ToString(), at->value().ToString()});
    }
    return at->status();
  }

  const std::string path_;
  Loop& loop_;
  Workers& workers_;
  const RocksDbMemory& memory_;
  Semaphore one_group_;
  std::shared_ptr<Group> next_;  // Its first member waits for its turn. Loop thread only.
  bool failed_ = false;          // Of the one group at a time.
  mutable std::shared_mutex mutex_;
  std::unique_ptr<rocksdb::DB> db_;  // Exchanged under mutex_; null after a failure to open.
};

}  // namespace

Result<std::unique_ptr<MetadataStore>> OpenRocksDbStore(const std::string& path, Loop& loop,
                                                        Workers& workers,
                                                        const RocksDbMemory& memory) {
  KV_ASSIGN_OR_RETURN(std::unique_ptr<rocksdb::DB> db, OpenDatabase(path, memory));
  std::unique_ptr<MetadataStore> store =
      std::make_unique<RocksDbStore>(std::move(db), path, loop, workers, memory);
  return store;
}

}  // namespace cairn::kv
