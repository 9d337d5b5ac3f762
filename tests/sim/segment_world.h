// A segment log on a simulated machine, users that work on it at once, and a model to hold it to.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kvstore/base/log.h"
#include "kvstore/base/random.h"
#include "kvstore/segment/segment_log.h"
#include "tests/sim/memory_metadata.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_workers.h"

namespace cairn::sim {

// A stripe of `data_shards` + 1 with one block, drawn from `random`.
kv::Manifest RandomManifest(kv::Random& random, uint32_t data_shards, uint32_t shard_sectors,
                            kv::UnixMillis expires_at);
// What shard `index` of the stripe holds: a function of the manifest alone.
kv::Bytes PayloadOf(const kv::Manifest& manifest, kv::ShardIndex index);

// The oracle is what segment_log.h promises. After a process crash: every acknowledged append is
// there. After a power cut: what was done before the last Sync is as it was then. Always: what is
// found reads back exact, range by range and whole.
class SegmentWorld {
 public:
  explicit SegmentWorld(uint64_t seed, uint32_t segment_count = 8);
  ~SegmentWorld();

  kv::Status Start();
  kv::Status Stop();
  // The process or the machine dies, if it lives, and all that ran in it ends.
  void Crash(CrashMode mode);
  // The next crash that a trip of the disk causes is of this kind, and takes the metadata along.
  void ExpectCrash(CrashMode mode) { expected_ = mode; }
  bool down() const { return disk_.down(); }

  // `users` users do `operations` random operations each, or as many as they can before a crash.
  void Work(uint32_t users, uint32_t operations);

  // Syncs all there is, and then reclaims and appends until freed segments are in use again.
  kv::Status ReuseSegments();

  // What breaks the oracle, or "" when nothing does. The log runs.
  std::string Check();
  // Without the metadata drops are forgotten: what was dropped may be back, as garbage.
  std::string CheckAfterRescan();
  // Bytes will be damaged: errors are to be expected, wrong answers are not.
  void ExpectDamage() { damaged_ = true; }
  // With bytes damaged by the test: nothing wrong may be read, but things may be missing.
  std::string CheckNothingWrong();

  kv::SegmentLog& log() { return *log_; }
  SimClock& clock() { return clock_; }
  SimDisk& disk() { return disk_; }
  MemoryMetadata& metadata() { return metadata_; }
  kv::Random& random() { return random_; }
  kv::SegmentLog::Parts parts();
  uint64_t stripe_count() const { return model_.size(); }
  uint64_t acknowledged() const { return acknowledged_; }

 private:
  enum class State { kUnknown, kPresent, kDropped };
  struct Entry {
    kv::Manifest manifest;
    kv::ShardIndex index;
    State state = State::kUnknown;
    bool synced = false;   // The state was reached before a Sync that is done.
    uint64_t version = 0;  // Of the state.
    uint32_t copies_in_flight = 0;
  };

  kv::Task<void> User(uint32_t operations);
  kv::Task<void> Append();
  kv::Task<void> AppendAgain();
  kv::Task<void> Sync();
  kv::Task<void> Read();
  kv::Task<void> Move();
  kv::Task<void> Drop(kv::StripeId stripe);
  kv::Task<void> Reclaim();
  kv::Task<void> AppendEntry(kv::StripeId stripe);
  Entry* AnyEntry();
  void Settle(Entry& entry, State state);
  void Complain(const std::string& what, const kv::Status& status);
  // "" when it reads back exact; anything but the exact bytes or an error is a complaint.
  std::string ReadBack(const Entry& entry, bool must_read);

  kv::Loop loop_;
  SimClock clock_{loop_};
  kv::Random random_;
  SimDisk disk_;
  SimWorkers workers_;
  MemoryMetadata metadata_;
  kv::NullLog null_log_;
  std::optional<CrashMode> expected_;
  CrashMode last_crash_ = CrashMode::kProcess;
  bool crashed_since_check_ = false;
  bool damaged_ = false;

  // Of the process that runs.
  std::unique_ptr<kv::Disk> disk_view_;
  std::unique_ptr<kv::MetadataStore> metadata_view_;
  kv::Random product_random_;
  std::unique_ptr<kv::SegmentLog> log_;

  std::map<kv::StripeId, Entry> model_;
  std::vector<kv::StripeId> order_;
  std::string complaint_;
  uint64_t acknowledged_ = 0;
};

}  // namespace cairn::sim
