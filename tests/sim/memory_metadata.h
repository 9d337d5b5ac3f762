// A MetadataStore in memory that loses unsynced batches in a power cut, and fails when told.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "kvstore/base/random.h"
#include "kvstore/metadata/metadata_store.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_disk.h"

namespace cairn::sim {

struct MemoryMetadataOptions {
  uint64_t seed = 1;
  kv::Nanos write_latency = kv::Micros(30);
  kv::Nanos read_latency = kv::Micros(8);
  kv::Nanos sync_latency = kv::Micros(400);
};

// The database as the machine holds it. Processes see it through Open(), until the next Crash.
class MemoryMetadata {
 public:
  MemoryMetadata(SimClock& clock, const MemoryMetadataOptions& options)
      : clock_(clock), options_(options), random_(options.seed) {}

  // Dead for good after the next Crash: every call then fails with kUnavailable.
  std::unique_ptr<kv::MetadataStore> Open();

  // Batches on their way take effect up to one of them, told to nobody. Then kProcess keeps all;
  // kPowerCut keeps a random prefix of those that are not synced.
  void Crash(CrashMode mode);
  // Everything is gone, as after the loss of the database's files.
  void Wipe();

  // The n-th write or sync from now (1 is the next) fails with kUnavailable and changes nothing.
  void FailWrite(uint64_t n) { fail_write_at_ = writes_ + n; }
  // While it is down every call fails with kUnavailable and changes nothing.
  void SetDown(bool down) { down_ = down; }
  bool is_down() const { return down_; }
  // Told when a write or a sync starts. It must not crash the database at once.
  void SetOnWrite(std::function<void()> on_write) { on_write_ = std::move(on_write); }
  uint64_t writes() const { return writes_; }
  size_t size() const { return entries_.size(); }

 private:
  class View;

  kv::Task<kv::Status> WriteAs(uint64_t generation, kv::MetadataBatch batch);
  kv::Task<kv::Status> SyncAs(uint64_t generation);
  void TakeEffect(kv::MetadataBatch batch);
  void Apply(std::map<std::string, std::string>& entries, const kv::MetadataBatch& batch);

  SimClock& clock_;
  const MemoryMetadataOptions options_;
  kv::Random random_;
  uint64_t generation_ = 1;
  uint64_t writes_ = 0;
  uint64_t fail_write_at_ = 0;
  bool down_ = false;
  std::function<void()> on_write_;
  std::deque<kv::MetadataBatch> on_their_way_;  // In the order of the calls.
  kv::Instant last_write_done_;  // Batches take effect in the order of the calls.
  std::map<std::string, std::string> entries_;
  std::map<std::string, std::string> synced_;
  std::deque<kv::MetadataBatch> unsynced_;
  uint64_t first_unsynced_ = 0;  // How many batches came before unsynced_'s first.
};

}  // namespace cairn::sim
