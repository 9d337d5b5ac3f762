// Write, sync, rename, sync the folder.
#include "kvstore/control/file/file_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace cairn::kv {
namespace {

constexpr uint64_t kFileSizeMax = 256 * kMiB;

Status Failure(const std::string& path, const char* what) {
  const int error = errno;
  const Code code = error == ENOSPC ? Code::kNoSpace : Code::kUnavailable;
  return Status(code, path + ": " + what + ": " + std::strerror(error));
}

// Of a file or a folder: what was written to it is on the medium.
Status SyncPath(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Failure(path, "open");
  const Status done = fsync(fd) == 0 ? Status() : Failure(path, "fsync");
  close(fd);
  return done;
}

Status WriteNew(const std::string& path, const std::string& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return Failure(path, "open");
  const size_t written = std::fwrite(bytes.data(), 1, bytes.size(), file);
  const bool closed = std::fclose(file) == 0;
  if (written != bytes.size() || !closed) return Failure(path, "write");
  return SyncPath(path);
}

Status Replace(const std::string& folder, const std::string& bytes) {
  const std::string path = folder + "/control";
  KV_RETURN_IF_ERROR(WriteNew(path + ".new", bytes));
  if (std::rename((path + ".new").c_str(), path.c_str()) != 0) return Failure(path, "rename");
  return SyncPath(folder);
}

// Empty when there is no such file.
Result<std::string> ReadAll(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr && errno == ENOENT) return std::string();
  if (file == nullptr) return Failure(path, "open");
  std::string bytes;
  char buffer[65536];
  size_t got = 0;
  while ((got = std::fread(buffer, 1, sizeof(buffer), file)) > 0 && bytes.size() < kFileSizeMax) {
    bytes.append(buffer, got);
  }
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  if (failed) return Failure(path, "read");
  return bytes;
}

}  // namespace

Result<std::unique_ptr<FileStore>> FileStore::Open(Loop& loop, Clock& clock, Workers& workers,
                                                   const std::string& folder) {
  const std::string lock_path = folder + "/control.lock";
  const int lock_fd = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_fd < 0) return Failure(lock_path, "open");
  if (flock(lock_fd, LOCK_EX | LOCK_NB) != 0) {
    close(lock_fd);
    return Status(Code::kConflict, folder + ": another process uses this control store");
  }
  Result<std::string> bytes = ReadAll(folder + "/control");
  Result<ControlState> state = bytes.status().ok() && !bytes.value().empty()
                                   ? ControlState::Decode(bytes.value())
                                   : Result<ControlState>(ControlState());
  if (!bytes.ok() || !state.ok()) {
    close(lock_fd);
    return bytes.ok() ? Status(state.code(), folder + "/control: " + state.status().message())
                      : bytes.status();
  }
  return std::unique_ptr<FileStore>(
      new FileStore(loop, clock, workers, folder, lock_fd, std::move(state).value()));
}

FileStore::FileStore(Loop& loop, Clock& clock, Workers& workers, std::string folder, int lock_fd,
                     ControlState state)
    : workers_(workers), folder_(std::move(folder)), lock_fd_(lock_fd) {
  store_ = std::make_unique<LocalStore>(loop, clock, std::move(state), [this](std::string bytes) {
    return Keep(std::move(bytes));
  });
}

FileStore::~FileStore() { close(lock_fd_); }

Task<Status> FileStore::Keep(std::string state) {
  Status kept;
  const std::function<void()> write = [this, &state, &kept] { kept = Replace(folder_, state); };
  co_await workers_.Run(write);
  co_return kept;
}

}  // namespace cairn::kv
