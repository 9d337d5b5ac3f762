// Seals memory, checks seals, and lays mappings over one another.
#include "kvstore/os/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>

#include "kvstore/base/check.h"

namespace cairn::kv {
namespace {

Status Failed(const char* what, int error) {
  return {Code::kUnavailable, std::string(what).append(": ").append(std::strerror(error))};
}

// Empty when `fd` is memory that stays.
std::string WhyUnsafe(int fd, uint64_t size) {
  struct statfs system{};
  struct stat file{};
  if (fstatfs(fd, &system) != 0 || fstat(fd, &file) != 0) return "it cannot be examined";
  if (system.f_type != TMPFS_MAGIC) return "it is not made by memfd_create with small pages";
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return "it is not sealed with F_SEAL_SHRINK";
  if (file.st_size < 0 || static_cast<uint64_t>(file.st_size) < size) {
    return std::string("it has only ").append(std::to_string(file.st_size)).append(" bytes");
  }
  return {};
}

uint8_t* Map(int fd, uint8_t* at, uint64_t size, uint64_t offset, int flags) {
  void* memory = mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd,
                      static_cast<off_t>(offset));
  return memory == MAP_FAILED ? nullptr : static_cast<uint8_t*>(memory);
}

}  // namespace

Result<std::unique_ptr<SharedMemory>> SharedMemory::Create(uint64_t size) {
  const uint64_t whole = AlignUp(size, kSectorSize);
  if (whole == 0 || whole < size) return Status(Code::kInvalid, "shared memory of no size");
  const int fd = memfd_create("cairn", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return Failed("no shared memory", errno);
  // Allocated now: a page that cannot be had later would end the process that touches it.
  uint8_t* base = nullptr;
  if (fallocate(fd, 0, 0, static_cast<off_t>(whole)) == 0 &&
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0) {
    base = Map(fd, nullptr, whole, 0, MAP_POPULATE);
  }
  if (base == nullptr) {
    const int error = errno;
    close(fd);
    return Failed("no shared memory of this size", error);
  }
  return std::unique_ptr<SharedMemory>(new SharedMemory(fd, base, whole));
}

Result<std::unique_ptr<SharedMemory>> SharedMemory::Adopt(int fd, uint64_t size) {
  std::string unsafe = size == 0 ? "it has no size" : WhyUnsafe(fd, size);
  if (!unsafe.empty()) {
    close(fd);
    return Status(Code::kInvalid, std::string("not memory to share: ").append(unsafe));
  }
  uint8_t* base = Map(fd, nullptr, size, 0, 0);
  if (base == nullptr) {
    const int error = errno;
    close(fd);
    return Failed("shared memory cannot be mapped", error);
  }
  return std::unique_ptr<SharedMemory>(new SharedMemory(fd, base, size));
}

SharedMemory::SharedMemory(int fd, uint8_t* base, uint64_t size)
    : fd_(fd), base_(base), size_(size), file_size_(size), files_{{0, 0}} {}

SharedMemory::~SharedMemory() {
  munmap(base_, size_);
  close(fd_);
}

std::vector<SharedMemory::Extent> SharedMemory::ExtentsOf(ByteSpan part) const {
  KV_CHECK(part.data() >= base_ && part.size() <= size_);
  uint64_t at = static_cast<uint64_t>(part.data() - base_);
  KV_CHECK(at <= size_ - part.size());
  uint64_t left = part.size();
  std::vector<Extent> extents;
  for (auto next = files_.upper_bound(at); left > 0; ++next) {
    const auto& [begin, file] = *std::prev(next);
    const uint64_t end = next == files_.end() ? size_ : next->first;
    const uint64_t size = std::min(left, end - at);
    extents.push_back({.file_offset = file + (at - begin), .size = size});
    at += size;
    left -= size;
    if (left == 0) break;
  }
  return extents;
}

Status SharedMemory::Replace(MutableByteSpan part) {
  const std::vector<Extent> old = ExtentsOf(part);
  const auto at = static_cast<uint64_t>(part.data() - base_);
  const uint64_t size = part.size();
  KV_CHECK(at % kSectorSize == 0 && size % kSectorSize == 0);
  if (size == 0) return Status();
  const auto fresh = static_cast<off_t>(file_size_);
  if (fallocate(fd_, 0, fresh, static_cast<off_t>(size)) != 0) {
    return Failed("no other memory to be had", errno);
  }
  if (Map(fd_, part.data(), size, file_size_, MAP_FIXED | MAP_POPULATE) == nullptr) {
    return Failed("other memory cannot be mapped", errno);
  }
  const uint64_t after = old.back().file_offset + old.back().size;
  const bool ends_inside = at + size < size_ && !files_.contains(at + size);
  files_.erase(files_.lower_bound(at), files_.lower_bound(at + size));
  files_[at] = file_size_;
  if (ends_inside) files_[at + size] = after;
  file_size_ += size;
  for (const Extent& extent : old) {
    // Best effort: without it the old memory only stays until the end.
    (void)fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(extent.file_offset), static_cast<off_t>(extent.size));
  }
  return Status();
}

}  // namespace cairn::kv
