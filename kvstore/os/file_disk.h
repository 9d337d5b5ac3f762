// A file, or a block device, as a Disk: direct I/O, preallocated, and locked against a second user.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kvstore/base/log.h"
#include "kvstore/base/result.h"
#include "kvstore/io/disk.h"
#include "kvstore/os/poller.h"

namespace cairn::kv {

struct FileDiskOptions {
  std::string path;
  // A multiple of kSectorSize. A shorter file is extended to it; 0 takes the file as it is. A
  // block device is never extended.
  uint64_t size = 0;
  enum class Missing { kCreate, kFail } missing = Missing::kCreate;
};

// Every operation must be awaited before it is destroyed.
class FileDisk final : public Disk {
 public:
  // Blocks: for start-up. `poller` must outlive the result. Says through `log` when the file system
  // refuses direct I/O (then the page cache is used) or allocation (then writes may find it full).
  // kNotFound: it is missing and was not to be created. kConflict: in use by another process, or
  // longer than `size`. kNoSpace: there is no room for `size`. kInvalid: not a file, not writable,
  // no such folder. The message names the file.
  static Result<std::unique_ptr<FileDisk>> Open(Poller& poller, Log& log,
                                                const FileDiskOptions& options);
  ~FileDisk() override;

  uint64_t size() const override { return size_; }
  Task<Status> Read(uint64_t offset, MutableByteSpan into) override;
  Task<Status> Write(uint64_t offset, ByteSpan from) override;
  Task<Status> Sync() override;

 private:
  FileDisk(Poller& poller, int fd, const FileDiskOptions& options, uint64_t size);
  void CheckRange(uint64_t offset, ByteSpan memory) const;
  Status Failed(const char* verb, uint64_t offset, int error) const;

  Poller& poller_;
  const int fd_;
  const std::string path_;
  const uint64_t size_;
};

}  // namespace cairn::kv
