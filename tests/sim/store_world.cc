// All devices of the machine crash together, also when one of them was told to.
#include "tests/sim/store_world.h"

#include <cinttypes>
#include <cstdio>

namespace cairn::sim {

void SimLog::Write(kv::LogLevel /*level*/, std::string_view message) {
  if (!enabled_) return;
  const int64_t micros = clock_.Now().nanos / 1'000;
  std::printf("%" PRId64 ".%06" PRId64 " %.*s\n", micros / 1'000'000, micros % 1'000'000,
              static_cast<int>(message.size()), message.data());
}

StoreWorld::StoreWorld(const StoreWorldOptions& options)
    : options_(options),
      clock_(loop_),
      random_(options.seed),
      workers_(clock_, random_.Next()),
      log_(clock_) {
  for (uint32_t i = 0; i < options.targets; ++i) {
    const SimDiskOptions disk_options{
        .size = 64 * kv::kKiB + options.segments * options.segment_size,
        .seed = random_.Next(),
        .id = i};
    disks_.push_back(std::make_unique<SimDisk>(loop_, clock_, disk_options));
    const MemoryMetadataOptions metadata_options{.seed = random_.Next()};
    metadata_.push_back(std::make_unique<MemoryMetadata>(clock_, metadata_options));
    disks_.back()->SetOnCrash([this] {
      if (!crashing_) Crash(CrashMode::kProcess);
    });
    disks_.back()->SetOnWrite([this] { CountWrite(); });
    metadata_.back()->SetOnWrite([this] { CountWrite(); });
  }
  node_options.segment_size = options.segment_size;
}

kv::Status StoreWorld::Start() {
  crashed_ = false;
  const kv::NodeParts parts{.loop = loop_,
                            .clock = clock_,
                            .workers = workers_,
                            .random = random_,
                            .log = log_,
                            .media = *this};
  auto node = clock_.Await(kv::Node::Open(parts, node_options));
  if (!node.ok()) return node.status();
  node_ = std::move(node).value();
  return kv::Status();
}

kv::Status StoreWorld::Stop() {
  const kv::Status status = clock_.Await(node_->Stop());
  node_.reset();
  return status;
}

void StoreWorld::CrashAtWrite(uint64_t n, CrashMode mode) {
  crash_at_write_ = n == 0 ? 0 : writes_ + n;
  crash_mode_ = mode;
}

void StoreWorld::CountWrite() {
  if (++writes_ != crash_at_write_) return;
  // A write takes about 20 us, a sync 500: sometimes it is done by then.
  const kv::Nanos later = kv::Micros(static_cast<int64_t>(random_.Below(60)));
  clock_.At(clock_.Now() + later, [this, node = node_.get()] {
    if (!crashed_ && node_.get() == node) Crash(crash_mode_);
  });
}

void StoreWorld::Crash(CrashMode mode) {
  if (on_crash_) on_crash_(mode);
  crashing_ = true;
  crashed_ = true;
  for (const auto& disk : disks_) {
    if (!disk->down()) disk->Crash(mode);
  }
  for (const auto& metadata : metadata_) metadata->Crash(mode);
  crashing_ = false;
}

void StoreWorld::Bury() {
  if (node_ != nullptr) clock_.Await(node_->Abandon());
  node_.reset();
  for (const auto& disk : disks_) disk->Restart();
}

void StoreWorld::SetDown(uint32_t i, bool down) {
  constexpr uint32_t kAlways = 1'000'000;
  disks_[i]->SetFaults(down ? DiskFaults{.read_error = kAlways, .write_error = kAlways}
                            : DiskFaults{});
  disks_[i]->SetSyncFails(down);
  metadata_[i]->SetDown(down);
}

void StoreWorld::Heal() {
  for (uint32_t i = 0; i < options_.targets; ++i) {
    SetDown(i, false);
    disks_[i]->SetFull(false);
  }
}

void StoreWorld::Wipe(uint32_t i) {
  disks_[i]->Wipe();
  metadata_[i]->Wipe();
}

kv::Task<kv::Result<kv::TargetMedium>> StoreWorld::Open(uint32_t i) {
  kv::TargetMedium medium;
  medium.disk = disks_[i]->Open();
  medium.metadata = metadata_[i]->Open();
  medium.label = std::to_string(i).insert(0, "target-");
  co_return medium;
}

kv::Task<kv::Result<kv::TargetMedium>> StoreWorld::Replace(uint32_t i, kv::Status /*why*/) {
  Wipe(i);
  co_return co_await Open(i);
}

kv::Task<kv::Result<kv::TargetMedium>> StoreWorld::ForgetMetadata(uint32_t i, kv::Status /*why*/) {
  metadata_[i]->Wipe();
  co_return co_await Open(i);
}

}  // namespace cairn::sim
