// Opens, makes and sets aside target folders, saying so aloud.
#include "kvstore/node/embedded/folder_media.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>
#include <vector>

#include "kvstore/os/file_disk.h"
#include "kvstore/segment/format.h"

namespace cairn::kv {
namespace {

namespace fs = std::filesystem;

constexpr Nanos kPatience = Seconds(10);

std::string SegmentsOf(const std::string& folder) { return folder + "/segments"; }
std::string IndexOf(const std::string& folder) { return folder + "/index"; }

// kConflict when a superblock of the file is of another version.
Status CheckVersion(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Status conflict;
  for (const uint64_t offset : kSuperblockOffsets) {
    Bytes sector(kSectorSize);
    file.clear();
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(reinterpret_cast<char*>(sector.data()), static_cast<std::streamsize>(kSectorSize));
    if (file.gcount() != static_cast<std::streamsize>(kSectorSize)) continue;
    const auto superblock = DecodeSuperblock(sector.span());
    if (superblock.ok() && superblock.value().has_value()) return Status();
    if (superblock.code() == Code::kConflict) conflict = superblock.status();
  }
  if (conflict.ok()) return conflict;
  return Status(Code::kConflict, path + ": " + conflict.message());
}

}  // namespace

FolderMedia::FolderMedia(const DataDir& dir, Clock& clock, Poller& poller, Workers& workers,
                         const RocksDbMemory& memory, Log& log, FolderMediaOptions options)
    : dir_(dir),
      clock_(clock),
      poller_(poller),
      workers_(workers),
      memory_(memory),
      log_(log),
      options_(options),
      fresh_(!AnyExists()) {}

bool FolderMedia::Exists(uint32_t i) const {
  std::error_code error;
  return fs::exists(SegmentsOf(dir_.TargetFolder(i)), error);
}

bool FolderMedia::AnyExists() const {
  for (uint32_t i = 0; i < options_.targets; ++i) {
    if (Exists(i)) return true;
  }
  return false;
}

Status FolderMedia::Check() const {
  std::vector<uint32_t> missing;
  for (uint32_t i = 0; i < options_.targets; ++i) {
    const std::string folder = dir_.TargetFolder(i);
    if (!Exists(i)) {
      missing.push_back(i);
      continue;
    }
    if (::access(folder.c_str(), W_OK | X_OK) != 0 ||
        ::access(SegmentsOf(folder).c_str(), R_OK | W_OK) != 0) {
      return Status(Code::kInvalid, folder + " is not writable");
    }
    KV_RETURN_IF_ERROR(CheckVersion(SegmentsOf(folder)));
  }
  return dir_.CheckFree(missing, options_.target_bytes);
}

Task<Result<TargetMedium>> FolderMedia::Open(uint32_t i) {
  const std::string folder = dir_.TargetFolder(i);
  std::error_code error;
  if (!Exists(i)) {
    if (!fresh_) {
      log_.Warning(DataDir::TargetLabel(i) +
                   " is missing: it is made anew and empty; what it held "
                   "is rebuilt from the other targets when it is read");
    }
    // An index without its segments describes nothing.
    fs::remove_all(IndexOf(folder), error);
  }
  co_return co_await OpenPatiently(i);
}

// The kernel lets go of a killed process's files only when its last I/O is done, which may be after
// the process is gone. We hold the data folder, so nobody else can be using them.
Task<Result<TargetMedium>> FolderMedia::OpenPatiently(uint32_t i) {
  const Instant until = clock_.Now() + kPatience;
  while (true) {
    auto medium = co_await OpenNow(i);
    if (medium.code() != Code::kConflict || clock_.Now() >= until) co_return medium;
    const Instant wake_at = clock_.Now() + Millis(20);
    co_await clock_.SleepUntil(wake_at, nullptr);
  }
}

Task<Result<TargetMedium>> FolderMedia::OpenNow(uint32_t i) {
  const std::string folder = dir_.TargetFolder(i);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) co_return Status(Code::kInvalid, folder + " cannot be created: " + error.message());
  const uint64_t size = Exists(i) ? 0 : options_.target_bytes;
  KV_CO_ASSIGN_OR_RETURN(auto disk,
                         FileDisk::Open(poller_, log_, {.path = SegmentsOf(folder), .size = size}));
  // RocksDB replays its log then.
  Result<std::unique_ptr<MetadataStore>> metadata{Status(Code::kUnavailable)};
  std::function<void()> open = [&] {
    metadata = OpenRocksDbStore(IndexOf(folder), poller_.loop(), workers_, memory_);
  };
  co_await workers_.Run(std::move(open));
  if (!metadata.ok()) co_return metadata.status();
  TargetMedium medium;
  medium.disk = std::move(disk);
  medium.metadata = std::move(metadata).value();
  medium.label = DataDir::TargetLabel(i);
  co_return medium;
}

Task<Result<TargetMedium>> FolderMedia::Replace(uint32_t i, Status why) {
  const std::string folder = dir_.TargetFolder(i);
  std::error_code error;
  std::string aside;
  for (int n = 1; aside.empty() || fs::exists(aside, error); ++n) {
    aside = folder + ".broken-" + std::to_string(n);
  }
  fs::rename(folder, aside, error);
  if (error) {
    co_return Status(Code::kUnavailable, folder + " cannot be set aside: " + error.message());
  }
  log_.Error(DataDir::TargetLabel(i) + " cannot be used (" + why.ToString() + "): set aside as " +
             aside + "; it is made anew and empty, and what it held is rebuilt when it is read");
  const std::vector<uint32_t> places = {i};
  KV_CO_RETURN_IF_ERROR(dir_.CheckFree(places, options_.target_bytes));
  co_return co_await OpenPatiently(i);
}

Task<Result<TargetMedium>> FolderMedia::ForgetMetadata(uint32_t i, Status why) {
  const std::string index = IndexOf(dir_.TargetFolder(i));
  log_.Warning(index + " is damaged (" + why.ToString() +
               "): removed, and rebuilt from the segments");
  std::error_code error;
  fs::remove_all(index, error);
  if (error) co_return Status(Code::kInvalid, index + " cannot be removed: " + error.message());
  co_return co_await OpenPatiently(i);
}

}  // namespace cairn::kv
