// Draws the fate of every operation when it starts, and carries it out when its time has come.
#include "tests/sim/sim_disk.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kvstore/base/check.h"
#include "kvstore/base/checksum.h"

namespace cairn::sim {

using kv::ByteSpan;
using kv::Code;
using kv::MutableByteSpan;
using kv::Status;
using kv::Task;

namespace {

void CheckAligned(uint64_t offset, const uint8_t* memory, uint64_t size, uint64_t device_size) {
  KV_CHECK(offset % kSector == 0);
  KV_CHECK(size % kSector == 0);
  KV_CHECK(reinterpret_cast<uintptr_t>(memory) % kSector == 0);
  KV_CHECK(size <= device_size);
  KV_CHECK(offset <= device_size - size);
}

void CopyPage(const SimMedia::PagePointer& page, uint8_t* into) {
  if (page == nullptr) {
    std::memset(into, 0, kSector);
  } else {
    std::memcpy(into, page->data(), kSector);
  }
}

Status Gone() { return {Code::kUnavailable, "simulated device is down"}; }

}  // namespace

class SimDisk::View final : public kv::Disk {
 public:
  View(SimDisk& disk, uint64_t generation) : disk_(disk), generation_(generation) {}
  uint64_t size() const override { return disk_.size(); }
  Task<Status> Read(uint64_t offset, MutableByteSpan into) override {
    return disk_.ReadAs(generation_, offset, into);
  }
  Task<Status> Write(uint64_t offset, ByteSpan from) override {
    return disk_.WriteAs(generation_, offset, from);
  }
  Task<Status> Sync() override { return disk_.SyncAs(generation_); }

 private:
  SimDisk& disk_;
  const uint64_t generation_;
};

SimDisk::SimDisk(kv::Loop& loop, SimClock& clock, const SimDiskOptions& options)
    : clock_(clock), loop_(loop), options_(options), random_(options.seed) {
  KV_CHECK(options.size % kSector == 0);
  KV_CHECK(options.size > 0);
  crashes_.emplace_back(loop);
}

Task<Status> SimDisk::Read(uint64_t offset, MutableByteSpan into) {
  return ReadAs(generation_, offset, into);
}
Task<Status> SimDisk::Write(uint64_t offset, ByteSpan from) {
  return WriteAs(generation_, offset, from);
}
Task<Status> SimDisk::Sync() { return SyncAs(generation_); }

std::unique_ptr<kv::Disk> SimDisk::Open() { return std::make_unique<View>(*this, generation_); }

Task<Status> SimDisk::ReadAs(uint64_t generation, uint64_t offset, MutableByteSpan into) {
  CheckAligned(offset, into.data(), into.size(), options_.size);
  if (!Serves(generation)) co_return Gone();
  const Trip fate = FateOfRead();
  co_await clock_.SleepUntil(DoneAt(options_.read_latency, into.size()), &crashes_.back());
  if (!Serves(generation)) co_return Gone();
  if (fate == Trip::kCrash || fate == Trip::kPowerCut) co_return CrashOf(fate);
  if (fate != Trip::kNone) {
    clock_.Note(TraceKind::kRead, options_.id, offset, 0);
    co_return Status(Code::kUnavailable, "simulated read error");
  }
  for (uint64_t at = 0; at < into.size(); at += kSector) {
    CopyPage(media_.Visible((offset + at) / kSector), into.data() + at);
  }
  // What was written is in the trace already: the first sector shows whether it came back.
  clock_.Note(TraceKind::kRead, options_.id, offset, kv::Checksum(into.first(kSector)));
  co_return Status();
}

Task<Status> SimDisk::WriteAs(uint64_t generation, uint64_t offset, ByteSpan from) {
  CheckAligned(offset, from.data(), from.size(), options_.size);
  if (!Serves(generation)) co_return Gone();
  if (on_write_) on_write_();
  const Trip fate = FateOfWrite();
  const uint64_t operation = next_operation_++;
  writes_in_flight_.emplace(operation, std::pair(offset, from));
  co_await clock_.SleepUntil(DoneAt(options_.write_latency, from.size()), &crashes_.back());
  if (!Serves(generation)) co_return Gone();
  if (fate == Trip::kCrash || fate == Trip::kPowerCut) co_return CrashOf(fate);
  writes_in_flight_.erase(operation);
  clock_.Note(TraceKind::kWrite, options_.id, offset, kv::Checksum(from));
  co_return Land(fate, offset, from);
}

Task<Status> SimDisk::SyncAs(uint64_t generation) {
  if (!Serves(generation)) co_return Gone();
  if (on_write_) on_write_();
  ++syncs_;
  Trip fate = sync_fails_ ? Trip::kError : Trip::kNone;
  if (syncs_ == trip_sync_.at) fate = trip_sync_.trip;
  const uint64_t mark = media_.MarkForSync();
  co_await clock_.SleepUntil(DoneAt(options_.sync_latency, 0), &crashes_.back());
  if (!Serves(generation)) co_return Gone();
  if (fate == Trip::kCrash || fate == Trip::kPowerCut) co_return CrashOf(fate);
  clock_.Note(TraceKind::kSync, options_.id, mark, 0);
  if (fate != Trip::kNone) {
    ++faults_met_;
    co_return Status(Code::kUnavailable, "simulated sync error");
  }
  media_.MakeDurable(mark);
  co_return Status();
}

void SimDisk::FlipBit(uint64_t offset, uint32_t bit) {
  KV_CHECK(offset < options_.size);
  SimMedia::Page page;
  CopyPage(media_.Visible(offset / kSector), page.data());
  page[offset % kSector] ^= static_cast<uint8_t>(1u << (bit % 8));
  media_.Damage(offset / kSector, MakePage(page.data()));
  clock_.Note(TraceKind::kDamage, options_.id, offset, bit);
}

void SimDisk::Corrupt(uint64_t offset, uint64_t size) {
  KV_CHECK(size <= options_.size);
  KV_CHECK(offset <= options_.size - size);
  SimMedia::Page page;
  for (uint64_t at = offset; at < offset + size;) {
    const uint64_t sector = at / kSector;
    CopyPage(media_.Visible(sector), page.data());
    for (; at < offset + size && at / kSector == sector; ++at) {
      page[at % kSector] ^= static_cast<uint8_t>(1 + random_.Below(255));
    }
    media_.Damage(sector, MakePage(page.data()));
  }
  clock_.Note(TraceKind::kDamage, options_.id, offset, size);
}

void SimDisk::Wipe() {
  media_.Wipe();
  clock_.Note(TraceKind::kDamage, options_.id, 0, options_.size);
}

void SimDisk::Crash(CrashMode mode) {
  if (down_) return;
  down_ = true;
  ++generation_;
  for (const auto& [operation, write] : std::exchange(writes_in_flight_, {})) {
    LandInPart(write.first, write.second);
  }
  if (mode == CrashMode::kPowerCut) media_.CutPower(random_);
  clock_.Note(TraceKind::kCrash, options_.id, generation_, static_cast<uint64_t>(mode));
  crashes_.back().Set();
  crashes_.emplace_back(loop_);
  if (on_crash_) on_crash_();
}

void SimDisk::Restart() {
  KV_CHECK(down_);
  down_ = false;
  busy_until_ = clock_.Now();
  clock_.Note(TraceKind::kRestart, options_.id, generation_, 0);
}

void SimDisk::ReadPristine(uint64_t offset, MutableByteSpan into) const {
  KV_CHECK(offset % kSector == 0);
  KV_CHECK(into.size() % kSector == 0);
  for (uint64_t at = 0; at < into.size(); at += kSector) {
    CopyPage(media_.Pristine((offset + at) / kSector), into.data() + at);
  }
}

Trip SimDisk::FateOfRead() {
  ++reads_;
  if (reads_ == trip_read_.at) return trip_read_.trip;
  return Draw(faults_.read_error) ? Trip::kError : Trip::kNone;
}

Trip SimDisk::FateOfWrite() {
  ++writes_;
  if (writes_ == trip_write_.at) return trip_write_.trip;
  if (full_) return Trip::kFull;
  if (Draw(faults_.write_error)) return Trip::kError;
  if (Draw(faults_.torn_write)) return Trip::kTorn;
  if (Draw(faults_.lost_write)) return Trip::kLost;
  if (Draw(faults_.misdirected_write)) return Trip::kMisdirected;
  if (Draw(faults_.bit_flip)) return Trip::kBitFlip;
  return Trip::kNone;
}

bool SimDisk::Draw(uint32_t chance) {
  if (chance == 0 || !random_.Chance(chance, 1'000'000)) return false;
  ++faults_met_;
  return true;
}

// The device moves bytes one operation after the other; latencies overlap.
kv::Instant SimDisk::DoneAt(kv::Nanos latency, uint64_t size) {
  const uint64_t bytes_per_micro = options_.bytes_per_second / 1'000'000;
  const auto transfer = static_cast<int64_t>(size * 1'000 / bytes_per_micro);
  busy_until_ = std::max(busy_until_, clock_.Now()) + kv::Nanos{transfer};
  const int64_t jitter = static_cast<int64_t>(random_.Below(100));  // Up to twice the latency.
  kv::Nanos spent{latency.value + latency.value * jitter / 100};
  if (Draw(faults_.slow)) spent = kv::Nanos{spent.value * 100} + kv::Millis(10);
  return busy_until_ + spent;
}

Status SimDisk::Land(Trip fate, uint64_t offset, ByteSpan from) {
  const uint64_t first = offset / kSector;
  const uint64_t count = from.size() / kSector;
  if (fate == Trip::kFull) return {Code::kNoSpace, "simulated device is full"};
  if (fate == Trip::kError) {
    LandInPart(offset, from);
    return {Code::kUnavailable, "simulated write error"};
  }
  bytes_written_ += from.size();
  const uint64_t elsewhere = fate == Trip::kMisdirected ? Misdirection(first, count) : first;
  for (uint64_t i = 0; i < count; ++i) {
    SimMedia::PagePointer page = MakePage(from.data() + i * kSector);
    const bool lands = fate == Trip::kTorn ? random_.Chance(1, 2)
                                           : fate != Trip::kLost && fate != Trip::kMisdirected;
    if (fate == Trip::kMisdirected) media_.Damage(elsewhere + i, page);
    if (lands) {
      media_.Store(first + i, std::move(page));
    } else {
      media_.Lose(first + i, std::move(page));
    }
  }
  if (fate == Trip::kBitFlip && count > 0) {
    const uint64_t at = offset + random_.Below(from.size());
    FlipBit(at, static_cast<uint32_t>(random_.Below(8)));
  }
  return {};
}

// What an interrupted or failed write leaves: old, new or torn bytes, and that is then the truth.
void SimDisk::LandInPart(uint64_t offset, ByteSpan from) {
  const uint64_t kind = random_.Below(3);
  for (uint64_t at = 0; at < from.size(); at += kSector) {
    const bool lands = kind == 0 ? false : kind == 1 ? true : random_.Chance(1, 2);
    if (lands) media_.Store((offset + at) / kSector, MakePage(from.data() + at));
  }
}

// A place within 256 sectors that holds the whole write and is not its own, if there is one.
uint64_t SimDisk::Misdirection(uint64_t sector, uint64_t count) {
  const uint64_t last = options_.size / kSector - count;
  const uint64_t low = sector > 256 ? sector - 256 : 0;
  const uint64_t high = std::min(last, sector + 256);
  uint64_t target = low + random_.Below(high - low + 1);
  if (target == sector && high > low) target = sector == low ? sector + 1 : sector - 1;
  return target;
}

Status SimDisk::CrashOf(Trip fate) {
  Crash(fate == Trip::kCrash ? CrashMode::kProcess : CrashMode::kPowerCut);
  return Gone();
}

}  // namespace cairn::sim
