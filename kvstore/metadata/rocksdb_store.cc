// RocksDB 7.8 behind the narrow interface: a write-ahead log without sync, and a sync on demand.
#include "kvstore/metadata/rocksdb_store.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <rocksdb/write_buffer_manager.h>

#include <utility>

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

Status ToStatus(const rocksdb::Status& status) {
  if (status.ok()) return Status();
  if (status.IsNotFound()) return Status(Code::kNotFound);
  if (status.IsCorruption()) return Status(Code::kCorrupt, status.ToString());
  if (status.IsNoSpace()) return Status(Code::kNoSpace, status.ToString());
  return Status(Code::kUnavailable, status.ToString());
}

class RocksDbStore final : public MetadataStore {
 public:
  RocksDbStore(std::unique_ptr<rocksdb::DB> db, Workers& workers)
      : db_(std::move(db)), workers_(workers) {}

  Task<Status> Write(MetadataBatch batch) override {
    rocksdb::Status outcome;
    co_await workers_.Run([&] {
      rocksdb::WriteBatch changes;
      for (const MetadataBatch::Change& change : batch.changes) {
        // Neither can fail on a batch in memory.
        (void)(change.is_delete ? changes.Delete(change.key)
                                : changes.Put(change.key, change.value));
      }
      outcome = db_->Write(rocksdb::WriteOptions(), &changes);
    });
    co_return ToStatus(outcome);
  }

  Task<Result<std::string>> Get(std::string key) override {
    rocksdb::Status outcome;
    std::string value;
    co_await workers_.Run([&] { outcome = db_->Get(rocksdb::ReadOptions(), key, &value); });
    if (!outcome.ok()) co_return ToStatus(outcome);
    co_return value;
  }

  Task<Result<std::vector<Entry>>> Scan(std::string prefix, std::string after,
                                        size_t limit) override {
    rocksdb::Status outcome;
    std::vector<Entry> entries;
    co_await workers_.Run([&] {
      const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(rocksdb::ReadOptions()));
      at->Seek(after < prefix ? prefix : after);
      if (at->Valid() && at->key() == after) at->Next();
      for (; at->Valid() && at->key().starts_with(prefix) && entries.size() < limit; at->Next()) {
        entries.push_back({at->key().ToString(), at->value().ToString()});
      }
      outcome = at->status();
    });
    if (!outcome.ok()) co_return ToStatus(outcome);
    co_return entries;
  }

  Task<Status> Sync() override {
    rocksdb::Status outcome;
    co_await workers_.Run([&] { outcome = db_->SyncWAL(); });
    co_return ToStatus(outcome);
  }

  uint64_t memory_bytes() const override {
    uint64_t memtables = 0;
    uint64_t readers = 0;
    db_->GetIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables, &memtables);
    db_->GetIntProperty(rocksdb::DB::Properties::kEstimateTableReadersMem, &readers);
    return memtables + readers;
  }

 private:
  const std::unique_ptr<rocksdb::DB> db_;
  Workers& workers_;
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
  options.keep_log_file_num = 2;
  options.max_log_file_size = 1 << 20;
  options.paranoid_checks = true;
  return options;
}

}  // namespace

Result<std::unique_ptr<MetadataStore>> OpenRocksDbStore(const std::string& path, Workers& workers,
                                                        const RocksDbMemory& memory) {
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(OptionsFor(memory.parts()), path, &opened);
  if (!status.ok()) {
    const std::string words = path + ": " + status.ToString();
    if (words.find("lock ") != std::string::npos) {
      return Status(Code::kConflict, path + " is in use by another process");
    }
    // A database that lacks files says so in several ways; all of them mean: rebuild it.
    const bool damaged =
        status.IsCorruption() || status.IsInvalidArgument() || status.IsPathNotFound();
    return Status(damaged ? Code::kCorrupt : Code::kUnavailable, words);
  }
  std::unique_ptr<MetadataStore> store =
      std::make_unique<RocksDbStore>(std::unique_ptr<rocksdb::DB>(opened), workers);
  return store;
}

}  // namespace cairn::kv
