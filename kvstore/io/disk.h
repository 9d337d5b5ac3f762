// The seam to storage: one device, or one file that stands for a device.
#pragma once

#include <cstdint>

#include "kvstore/async/task.h"
#include "kvstore/base/bytes.h"
#include "kvstore/base/status.h"

namespace cairn::kv {

// Offsets, sizes and memory addresses are multiples of kSectorSize: a check fails otherwise.
// The memory is the caller's and must stay until the task is done. Operations in flight at the same
// time may take effect in any order. Loop thread only.
class Disk {
 public:
  virtual ~Disk() = default;

  // Constant. In bytes.
  virtual uint64_t size() const = 0;

  // Fills `into` whole, or fails: kUnavailable for an I/O error or a short read. On failure the
  // content of `into` means nothing.
  virtual Task<Status> Read(uint64_t offset, MutableByteSpan into) = 0;

  // All of `from`, or fails (kUnavailable, kNoSpace); then the range holds old, new or torn bytes.
  // Survives the process at once, and a power cut after the next Sync.
  virtual Task<Status> Write(uint64_t offset, ByteSpan from) = 0;

  // Every write that was done when Sync was called survives a power cut.
  virtual Task<Status> Sync() = 0;
};

}  // namespace cairn::kv
