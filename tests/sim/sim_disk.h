// A simulated device: latency, faults and crashes from one seed, over sparse memory.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "kvstore/base/random.h"
#include "kvstore/io/disk.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_media.h"

namespace cairn::sim {

struct SimDiskOptions {
  uint64_t size = 0;  // A multiple of the sector.
  uint64_t seed = 1;
  uint32_t id = 0;  // In the trace.
  kv::Nanos read_latency = kv::Micros(80);
  kv::Nanos write_latency = kv::Micros(20);
  kv::Nanos sync_latency = kv::Micros(500);
  uint64_t bytes_per_second = 3'000'000'000;
};

// The chance of each fault, per operation, out of a million.
struct DiskFaults {
  uint32_t read_error = 0;
  uint32_t write_error = 0;        // Told; the range then holds old, new or torn bytes.
  uint32_t bit_flip = 0;           // Of a write: one bit of it is wrong until it is overwritten.
  uint32_t torn_write = 0;         // Untold: only some sectors land.
  uint32_t lost_write = 0;         // Untold: nothing lands.
  uint32_t misdirected_write = 0;  // Untold: it lands on other sectors nearby.
  uint32_t slow = 0;               // A hundred times the latency, and 10 ms more.
};

enum class CrashMode {
  kProcess,   // Written bytes stay, synced or not.
  kPowerCut,  // A random subset of the sectors that are not synced falls back to what it was.
};

// What happens to one operation that a test has singled out.
enum class Trip { kNone, kError, kFull, kTorn, kLost, kMisdirected, kBitFlip, kCrash, kPowerCut };

// While it is down (after Crash, until Restart) every operation fails with kUnavailable, and those
// that were in flight do so too. In-flight writes land whole, in part or not at all.
class SimDisk final : public kv::Disk {
 public:
  SimDisk(kv::Loop& loop, SimClock& clock, const SimDiskOptions& options);

  // As the process that holds it now.
  uint64_t size() const override { return options_.size; }
  kv::Task<kv::Status> Read(uint64_t offset, kv::MutableByteSpan into) override;
  kv::Task<kv::Status> Write(uint64_t offset, kv::ByteSpan from) override;
  kv::Task<kv::Status> Sync() override;
  // The same device as seen by the process that starts now: dead for good after the next Crash, so
  // that what is left of a crashed node cannot touch the device of its successor.
  std::unique_ptr<kv::Disk> Open();

  // Faults.
  void SetFaults(const DiskFaults& faults) { faults_ = faults; }
  void SetFull(bool full) { full_ = full; }  // Writes get kNoSpace.
  void SetSyncFails(bool fails) { sync_fails_ = fails; }  // And makes nothing durable.
  void FlipBit(uint64_t offset, uint32_t bit);
  void Corrupt(uint64_t offset, uint64_t size);  // Every byte of the range gets another value.
  void Wipe();                                   // A new, empty device in the same place.
  // The n-th such operation from now (1 is the next) meets `trip`. One at a time of each kind.
  void TripWrite(uint64_t n, Trip trip) { trip_write_ = {writes_ + n, trip}; }
  void TripRead(uint64_t n, Trip trip) { trip_read_ = {reads_ + n, trip}; }
  void TripSync(uint64_t n, Trip trip) { trip_sync_ = {syncs_ + n, trip}; }

  void Crash(CrashMode mode);
  void Restart();
  bool down() const { return down_; }
  // Told when a write or a sync starts. It must not crash the disk at once.
  void SetOnWrite(std::function<void()> on_write) { on_write_ = std::move(on_write); }
  // Told after each Crash, also one that a trip caused. It must not destroy the disk.
  void SetOnCrash(std::function<void()> on_crash) { on_crash_ = std::move(on_crash); }

  // The truth, for the checker: what a device without faults would hold.
  void ReadPristine(uint64_t offset, kv::MutableByteSpan into) const;

  uint64_t reads() const { return reads_; }
  uint64_t writes() const { return writes_; }
  uint64_t syncs() const { return syncs_; }
  uint64_t bytes_written() const { return bytes_written_; }
  uint64_t faults_met() const { return faults_met_; }
  const SimMedia& media() const { return media_; }

 private:
  class View;
  struct TripPoint {
    uint64_t at = 0;
    Trip trip = Trip::kNone;
  };

  kv::Task<kv::Status> ReadAs(uint64_t generation, uint64_t offset, kv::MutableByteSpan into);
  kv::Task<kv::Status> WriteAs(uint64_t generation, uint64_t offset, kv::ByteSpan from);
  kv::Task<kv::Status> SyncAs(uint64_t generation);
  bool Serves(uint64_t generation) const { return !down_ && generation == generation_; }

  Trip FateOfRead();
  Trip FateOfWrite();
  bool Draw(uint32_t chance);
  kv::Instant DoneAt(kv::Nanos latency, uint64_t size);
  kv::Status Land(Trip fate, uint64_t offset, kv::ByteSpan from);
  void LandInPart(uint64_t offset, kv::ByteSpan from);
  uint64_t Misdirection(uint64_t sector, uint64_t count);
  kv::Status CrashOf(Trip fate);

  // Constant.
  SimClock& clock_;
  kv::Loop& loop_;
  const SimDiskOptions options_;

  kv::Random random_;
  SimMedia media_;
  DiskFaults faults_;
  bool full_ = false;
  bool sync_fails_ = false;
  TripPoint trip_write_;
  TripPoint trip_read_;
  TripPoint trip_sync_;
  std::function<void()> on_write_;
  std::function<void()> on_crash_;

  bool down_ = false;
  uint64_t generation_ = 1;
  std::deque<kv::Event> crashes_;  // The last one ends what is in flight; old ones may be watched.
  kv::Instant busy_until_;
  uint64_t next_operation_ = 1;
  std::map<uint64_t, std::pair<uint64_t, kv::ByteSpan>> writes_in_flight_;

  uint64_t reads_ = 0;
  uint64_t writes_ = 0;
  uint64_t syncs_ = 0;
  uint64_t bytes_written_ = 0;
  uint64_t faults_met_ = 0;
};

}  // namespace cairn::sim
