// Opens with care, then reads and writes until all is done.
#include "kvstore/os/file_disk.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace cairn::kv {
namespace {

constexpr uint64_t kTransferMax = 256 * kMiB;

Code CodeOf(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return Code::kNoSpace;
    case ENOENT:
      return Code::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
    case EISDIR:
    case ENOTDIR:
    case ETXTBSY:
      return Code::kInvalid;
    default:
      return Code::kUnavailable;
  }
}

Status Failure(const std::string& path, const std::string& what, int error) {
  return {CodeOf(error), path + ": " + what + ": " + std::strerror(error)};
}

// Closes itself unless it is released.
class OwnedFd {
 public:
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(const OwnedFd&) = delete;
  OwnedFd& operator=(const OwnedFd&) = delete;
  ~OwnedFd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

int OpenFile(const FileDiskOptions& options, Log& log, int& error) {
  const int create = options.missing == FileDiskOptions::Missing::kCreate ? O_CREAT : 0;
  const int flags = O_RDWR | O_CLOEXEC | create;
  int fd = open(options.path.c_str(), flags | O_DIRECT, 0600);
  if (fd < 0 && errno == EINVAL) {
    fd = open(options.path.c_str(), flags, 0600);
    if (fd >= 0) {
      log.Warning(options.path + ": the file system refuses direct I/O; the page cache is used");
    }
  }
  error = fd < 0 ? errno : 0;
  return fd;
}

// Trying would take all the room that is left from everybody else for a moment.
Status CheckRoom(int fd, const FileDiskOptions& options, uint64_t allocated) {
  struct statvfs about;
  if (fstatvfs(fd, &about) != 0) return Failure(options.path, "has no file system", errno);
  const uint64_t room = uint64_t{about.f_bavail} * about.f_frsize;
  if (options.size <= allocated || options.size - allocated <= room) return {};
  return {Code::kNoSpace, options.path + ": needs " + std::to_string(options.size - allocated) +
                              " more bytes, and its file system has " + std::to_string(room)};
}

// Gives the file at least `size` bytes that no later write can lack.
Status Extend(int fd, const FileDiskOptions& options, uint64_t allocated, Log& log) {
  KV_RETURN_IF_ERROR(CheckRoom(fd, options, allocated));
  if (fallocate(fd, 0, 0, static_cast<off_t>(options.size)) != 0) {
    if (errno != EOPNOTSUPP) {
      return Failure(options.path,
                     "cannot allocate " + std::to_string(options.size) + " bytes", errno);
    }
    log.Warning(options.path + ": the file system cannot allocate ahead; it may become full later");
    if (ftruncate(fd, static_cast<off_t>(options.size)) != 0) {
      return Failure(options.path, "cannot be extended", errno);
    }
  }
  if (fsync(fd) != 0) return Failure(options.path, "cannot be synced", errno);
  // The name of a new file is as important as its bytes.
  const size_t slash = options.path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : options.path.substr(0, slash + 1);
  const OwnedFd folder_fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder_fd.get() < 0 || fsync(folder_fd.get()) != 0) {
    return Failure(folder, "cannot be synced", errno);
  }
  return {};
}

Result<uint64_t> CheckSize(int fd, const FileDiskOptions& options, Log& log) {
  struct stat about;
  if (fstat(fd, &about) != 0) return Failure(options.path, "cannot be examined", errno);
  uint64_t size = static_cast<uint64_t>(about.st_size);
  if (S_ISBLK(about.st_mode)) {
    if (ioctl(fd, BLKGETSIZE64, &size) != 0) return Failure(options.path, "has no size", errno);
    if (options.size > size) {
      return Status(Code::kNoSpace, options.path + ": the device has only " +
                                        std::to_string(size) + " bytes");
    }
    return options.size != 0 ? options.size : AlignDown(size, kSectorSize);
  }
  if (!S_ISREG(about.st_mode)) {
    return Status(Code::kInvalid, options.path + ": is neither a file nor a block device");
  }
  if (options.size != 0 && size > options.size) {
    return Status(Code::kConflict, options.path + ": has " + std::to_string(size) + " bytes, and " +
                                       std::to_string(options.size) + " were asked for");
  }
  if (size < options.size) {
    const uint64_t allocated = static_cast<uint64_t>(about.st_blocks) * 512;
    const Status extended = Extend(fd, options, allocated, log);
    if (!extended.ok()) {
      // What is left of a failed attempt would pass for a smaller disk.
      if (ftruncate(fd, about.st_size) != 0) log.Error(options.path + ": cannot be cut back");
      if (size == 0) unlink(options.path.c_str());
      return extended;
    }
    size = options.size;
  }
  if (size == 0 || size % kSectorSize != 0) {
    return Status(Code::kInvalid, options.path + ": its " + std::to_string(size) +
                                      " bytes are not a whole number of sectors");
  }
  return size;
}

}  // namespace

Result<std::unique_ptr<FileDisk>> FileDisk::Open(Poller& poller, Log& log,
                                                 const FileDiskOptions& options) {
  KV_CHECK(options.size % kSectorSize == 0);
  int error = 0;
  OwnedFd fd(OpenFile(options, log, error));
  if (fd.get() < 0) {
    if (error == ENOENT && options.missing == FileDiskOptions::Missing::kCreate) {
      return Status(Code::kInvalid, options.path + ": its folder does not exist");
    }
    return Failure(options.path, "cannot be opened for writing", error);
  }
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Failure(options.path, "cannot be locked", errno);
    return Status(Code::kConflict, options.path + ": is in use by another process");
  }
  KV_ASSIGN_OR_RETURN(const uint64_t size, CheckSize(fd.get(), options, log));
  return std::unique_ptr<FileDisk>(new FileDisk(poller, fd.Release(), options, size));
}

FileDisk::FileDisk(Poller& poller, int fd, const FileDiskOptions& options, uint64_t size)
    : poller_(poller), fd_(fd), path_(options.path), size_(size) {}

FileDisk::~FileDisk() { close(fd_); }

Task<Status> FileDisk::Read(uint64_t offset, MutableByteSpan into) {
  CheckRange(offset, into);
  uint64_t done = 0;
  while (done < into.size()) {
    const auto size = static_cast<uint32_t>(std::min(into.size() - done, kTransferMax));
    const int64_t got = co_await poller_.ReadAt(fd_, into.data() + done, size, offset + done);
    if (got == -EINTR || got == -EAGAIN) continue;
    if (got < 0) co_return Failed("read", offset + done, static_cast<int>(-got));
    // Direct I/O goes on from a whole sector; a device that gives less than one has ended.
    const uint64_t whole = AlignDown(static_cast<uint64_t>(got), kSectorSize);
    if (whole == 0) {
      co_return Status(Code::kUnavailable, path_ + ": ends before byte " +
                                               std::to_string(offset + into.size()));
    }
    done += whole;
  }
  co_return Status();
}

Task<Status> FileDisk::Write(uint64_t offset, ByteSpan from) {
  CheckRange(offset, from);
  uint64_t done = 0;
  while (done < from.size()) {
    const auto size = static_cast<uint32_t>(std::min(from.size() - done, kTransferMax));
    const int64_t put = co_await poller_.WriteAt(fd_, from.data() + done, size, offset + done);
    if (put == -EINTR || put == -EAGAIN) continue;
    if (put < 0) co_return Failed("write", offset + done, static_cast<int>(-put));
    const uint64_t whole = AlignDown(static_cast<uint64_t>(put), kSectorSize);
    if (whole == 0) co_return Failed("write", offset + done, ENOSPC);
    done += whole;
  }
  co_return Status();
}

Task<Status> FileDisk::Sync() {
  for (;;) {
    const int64_t result = co_await poller_.SyncData(fd_);
    if (result == -EINTR || result == -EAGAIN) continue;
    if (result < 0) co_return Failed("sync", 0, static_cast<int>(-result));
    co_return Status();
  }
}

void FileDisk::CheckRange(uint64_t offset, ByteSpan memory) const {
  KV_CHECK(offset % kSectorSize == 0);
  KV_CHECK(memory.size() % kSectorSize == 0);
  KV_CHECK(reinterpret_cast<uintptr_t>(memory.data()) % kSectorSize == 0);
  KV_CHECK(memory.size() <= size_);
  KV_CHECK(offset <= size_ - memory.size());
}

Status FileDisk::Failed(const char* verb, uint64_t offset, int error) const {
  const Code code = CodeOf(error) == Code::kNoSpace ? Code::kNoSpace : Code::kUnavailable;
  return {code, path_ + ": " + verb + " at byte " + std::to_string(offset) +
                    " failed: " + std::strerror(error)};
}

}  // namespace cairn::kv
