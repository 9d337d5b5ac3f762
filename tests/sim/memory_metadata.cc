// The deterministic twin of RocksDB: a map, a synced copy of it, and the batches in between.
#include "tests/sim/memory_metadata.h"

#include <algorithm>
#include <utility>

namespace cairn::sim {

using kv::Code;
using kv::Status;
using kv::Task;

class MemoryMetadata::View final : public kv::MetadataStore {
 public:
  View(MemoryMetadata& machine, uint64_t generation)
      : machine_(machine), generation_(generation) {}

  Task<Status> Write(kv::MetadataBatch batch) override {
    return machine_.WriteAs(generation_, std::move(batch));
  }
  Task<Status> Sync() override { return machine_.SyncAs(generation_); }

  Task<kv::Result<std::string>> Get(std::string key) override {
    co_await machine_.clock_.SleepUntil(
        machine_.clock_.Now() + machine_.options_.read_latency, nullptr);
    if (!alive()) co_return Status(Code::kUnavailable, "the machine is down");
    const auto found = machine_.entries_.find(key);
    if (found == machine_.entries_.end()) co_return Status(Code::kNotFound);
    co_return found->second;
  }

  Task<kv::Result<std::vector<Entry>>> Scan(std::string prefix, std::string after,
                                            size_t limit) override {
    co_await machine_.clock_.SleepUntil(
        machine_.clock_.Now() + machine_.options_.read_latency, nullptr);
    if (!alive()) co_return Status(Code::kUnavailable, "the machine is down");
    std::vector<Entry> entries;
    auto at = after < prefix ? machine_.entries_.lower_bound(prefix)
                             : machine_.entries_.upper_bound(after);
    for (; at != machine_.entries_.end() && at->first.starts_with(prefix) &&
           entries.size() < limit;
         ++at) {
      entries.push_back({at->first, at->second});
    }
    co_return entries;
  }

  uint64_t memory_bytes() const override { return 0; }

 private:
  bool alive() const { return machine_.generation_ == generation_ && !machine_.down_; }

  MemoryMetadata& machine_;
  const uint64_t generation_;
};

std::unique_ptr<kv::MetadataStore> MemoryMetadata::Open() {
  return std::make_unique<View>(*this, generation_);
}

Task<Status> MemoryMetadata::WriteAs(uint64_t generation, kv::MetadataBatch batch) {
  if (generation != generation_) co_return Status(Code::kUnavailable, "the machine is down");
  if (on_write_) on_write_();
  const bool fails = ++writes_ == fail_write_at_ || down_;
  last_write_done_ = std::max(last_write_done_, clock_.Now() + options_.write_latency);
  if (fails) batch.changes.clear();
  on_their_way_.push_back(std::move(batch));
  co_await clock_.SleepUntil(last_write_done_, nullptr);
  if (generation != generation_) co_return Status(Code::kUnavailable, "the machine is down");
  TakeEffect(std::move(on_their_way_.front()));
  on_their_way_.pop_front();
  if (fails) co_return Status(Code::kUnavailable, "injected");
  co_return Status();
}

void MemoryMetadata::TakeEffect(kv::MetadataBatch batch) {
  Apply(entries_, batch);
  unsynced_.push_back(std::move(batch));
}

Task<Status> MemoryMetadata::SyncAs(uint64_t generation) {
  if (generation != generation_) co_return Status(Code::kUnavailable, "the machine is down");
  if (on_write_) on_write_();
  const bool fails = ++writes_ == fail_write_at_ || down_;
  const uint64_t covered = first_unsynced_ + unsynced_.size();
  co_await clock_.SleepUntil(clock_.Now() + options_.sync_latency, nullptr);
  if (generation != generation_) co_return Status(Code::kUnavailable, "the machine is down");
  if (fails) co_return Status(Code::kUnavailable, "injected");
  for (; first_unsynced_ < covered; ++first_unsynced_) {
    Apply(synced_, unsynced_.front());
    unsynced_.pop_front();
  }
  co_return Status();
}

void MemoryMetadata::Apply(std::map<std::string, std::string>& entries,
                           const kv::MetadataBatch& batch) {
  for (const kv::MetadataBatch::Change& change : batch.changes) {
    if (change.is_delete) {
      entries.erase(change.key);
    } else {
      entries[change.key] = change.value;
    }
  }
}

void MemoryMetadata::Crash(CrashMode mode) {
  ++generation_;
  const uint64_t landed = random_.Below(on_their_way_.size() + 1);
  for (size_t i = 0; i < landed; ++i) TakeEffect(std::move(on_their_way_[i]));
  on_their_way_.clear();
  if (mode == CrashMode::kProcess) return;
  const uint64_t kept = random_.Below(unsynced_.size() + 1);
  for (size_t i = 0; i < kept; ++i) Apply(synced_, unsynced_[i]);
  entries_ = synced_;
  first_unsynced_ += unsynced_.size();
  unsynced_.clear();
}

void MemoryMetadata::Wipe() {
  entries_.clear();
  synced_.clear();
  first_unsynced_ += unsynced_.size();
  unsynced_.clear();
}

}  // namespace cairn::sim
