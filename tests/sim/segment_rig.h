// One target under simulation: a segment log on a faulty disk, its records, and what it must hold.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "kvstore/base/checksum.h"
#include "kvstore/segment/segment_log.h"
#include "tests/sim/memory_metadata.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_workers.h"

namespace cairn::sim {

// A process that owns the log, and a machine that outlives it.
class SegmentRig {
 public:
  struct Options {
    uint64_t seed = 1;
    uint64_t segment_size = 4 * kv::kMiB;
    uint32_t segments = 8;
  };
  struct Shard {
    kv::Manifest manifest;
    kv::ShardIndex index;
    std::vector<uint8_t> payload;
  };

  explicit SegmentRig(const Options& options)
      : options_(options),
        random_(options.seed),
        clock_(loop_),
        disk_(loop_, clock_,
              {.size = 64 * kv::kKiB + options.segments * options.segment_size,
               .seed = options.seed}),
        workers_(clock_, options.seed),
        metadata_(clock_, {.seed = options.seed}) {}

  // Starts a process. The outcome of SegmentLog::Open.
  kv::Status Start() {
    disk_view_ = disk_.Open();
    metadata_view_ = metadata_.Open();
    auto log = clock_.Await(kv::SegmentLog::Open(
        {loop_, clock_, workers_, *disk_view_, *metadata_view_, random_, null_log_},
        {.segment_size = options_.segment_size}));
    if (!log.ok()) return log.status();
    log_ = std::move(log).value();
    return kv::Status();
  }
  kv::Status Stop() {
    const kv::Status status = clock_.Await(log_->Stop());
    log_.reset();
    return status;
  }
  // The process dies; with kPowerCut the machine loses what was not synced.
  void Crash(CrashMode mode) {
    disk_.Crash(mode);
    metadata_.Crash(mode);
    clock_.RunUntilIdle();
    log_.reset();
    disk_.Restart();
  }

  // A stripe of one data shard and one parity shard, of which this target holds `index`.
  Shard Make(uint32_t sectors, kv::Nanos ttl = kv::Seconds(3600)) {
    Shard shard;
    kv::Manifest& manifest = shard.manifest;
    const uint64_t high = random_.Next();
    manifest.stripe = {{high, random_.Next()}};
    manifest.code_id = 1;
    manifest.data_shards = 1;
    manifest.parity_shards = 1;
    manifest.shard_size = sectors * static_cast<uint32_t>(kv::kSectorSize);
    manifest.retention.ttl_seconds = static_cast<uint32_t>(ttl.value / 1'000'000'000);
    manifest.retention.expires_at = {clock_.UnixNow().value + ttl.value / 1'000'000};
    manifest.targets = {{1}, {2}};
    manifest.blocks = {{{{high, 1}}, 0, manifest.shard_size, 0}};
    shard.index = {static_cast<uint8_t>(random_.Below(2))};
    shard.payload.resize(manifest.shard_size);
    random_.Fill(shard.payload);
    return shard;
  }
  kv::Task<kv::Status> Append(const Shard& shard) {
    const kv::Bytes payload = kv::Bytes::CopyOf(shard.payload);
    const kv::ShardPayload given{payload.span(), kv::Checksum(payload.span())};
    co_return co_await log_->Append(shard.manifest, shard.index, given);
  }
  kv::Status AppendNow(const Shard& shard) { return clock_.Await(Append(shard)); }

  // The payload as the log gives it, verified by the log; nothing when it has no such shard.
  std::optional<std::vector<uint8_t>> Get(const Shard& shard) {
    kv::Bytes into(shard.payload.size());
    const kv::Status status = clock_.Await(
        log_->ReadVerified(shard.manifest.stripe, shard.index, into.span()));
    if (!status.ok()) return std::nullopt;
    return std::vector<uint8_t>(into.data(), into.data() + into.size());
  }
  bool Holds(const Shard& shard) { return Get(shard) == shard.payload; }

  kv::SegmentLog& log() { return *log_; }
  SimDisk& disk() { return disk_; }
  MemoryMetadata& metadata() { return metadata_; }
  SimClock& clock() { return clock_; }
  kv::Random& random() { return random_; }
  bool running() const { return log_ != nullptr; }

  template <typename T>
  T Await(kv::Task<T> task) {
    return clock_.Await(std::move(task));
  }

 private:
  const Options options_;
  kv::Loop loop_;
  kv::Random random_;
  SimClock clock_;
  SimDisk disk_;
  SimWorkers workers_;
  MemoryMetadata metadata_;
  kv::NullLog null_log_;
  std::unique_ptr<kv::Disk> disk_view_;
  std::unique_ptr<kv::MetadataStore> metadata_view_;
  std::unique_ptr<kv::SegmentLog> log_;
};

}  // namespace cairn::sim
