// One lock file, held for the life of the process.
#include "kvstore/node/embedded/data_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>

#include "kvstore/base/units.h"

namespace cairn::kv {
namespace {

std::string ReadSmall(int fd) {
  char text[64] = {};
  const ssize_t size = ::pread(fd, text, sizeof(text) - 1, 0);
  std::string read(text, size > 0 ? static_cast<size_t>(size) : 0);
  while (!read.empty() && read.back() == '\n') read.pop_back();
  return read.empty() ? "unknown" : read;
}

Status Unreadable(const std::string& path) {
  return Status(Code::kUnavailable, path + ": " + std::strerror(errno));
}

std::string InMiB(uint64_t bytes) { return std::to_string(bytes / kMiB) + " MiB"; }

}  // namespace

Result<std::unique_ptr<DataDir>> DataDir::Open(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    return Status(Code::kInvalid,
                  "the data folder " + path + " cannot be created: " + error.message());
  }
  const std::string lock_path = path + "/lock";
  const int fd = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    return Status(Code::kInvalid,
                  "the data folder " + path + " is not writable: " + std::strerror(errno));
  }
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const std::string holder = ReadSmall(fd);
    ::close(fd);
    return Status(Code::kConflict,
                  "the data folder " + path + " is in use by another process (" + holder + ")");
  }
  const std::string self = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd, 0) != 0 ||
      ::pwrite(fd, self.data(), self.size(), 0) != static_cast<ssize_t>(self.size())) {
    const int reason = errno;
    ::close(fd);
    return Status(reason == ENOSPC ? Code::kNoSpace : Code::kInvalid,
                  "the data folder " + path + " is not writable: " + std::strerror(reason));
  }
  return std::unique_ptr<DataDir>(new DataDir(path, fd));
}

DataDir::~DataDir() { ::close(lock_fd_); }

std::string DataDir::TargetLabel(uint32_t i) {
  char label[32];
  std::snprintf(label, sizeof(label), "target-%02u", i);
  return label;
}

std::string DataDir::TargetFolder(uint32_t i) const { return path_ + "/" + TargetLabel(i); }

Status DataDir::CheckFree(const std::vector<uint32_t>& targets, uint64_t bytes) const {
  struct FileSystem {
    std::string path;
    uint64_t needed = 0;
  };
  std::map<dev_t, FileSystem> file_systems;
  for (const uint32_t i : targets) {
    struct stat info {};
    std::string place = TargetFolder(i);
    if (::stat(place.c_str(), &info) != 0) place = path_;
    if (::stat(place.c_str(), &info) != 0) return Unreadable(place);
    FileSystem& file_system = file_systems[info.st_dev];
    if (file_system.path.empty()) file_system.path = place;
    file_system.needed += bytes;
  }
  for (const auto& [device, file_system] : file_systems) {
    struct statvfs info {};
    if (::statvfs(file_system.path.c_str(), &info) != 0) return Unreadable(file_system.path);
    const uint64_t free = uint64_t{info.f_bavail} * info.f_frsize;
    if (free >= file_system.needed) continue;
    return Status(Code::kNoSpace, "the targets in " + file_system.path + " need " +
                                      InMiB(file_system.needed) + ", but their file system has " +
                                      InMiB(free) + " free: configure less, or free some");
  }
  return Status();
}

}  // namespace cairn::kv
