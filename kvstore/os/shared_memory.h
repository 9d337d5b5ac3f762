// Memory that two processes map: made here and handed over as a descriptor, or taken from a peer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "kvstore/base/bytes.h"
#include "kvstore/base/result.h"

namespace cairn::kv {

// Calls on one thread at a time; the memory itself is for any.
class SharedMemory {
 public:
  // Zero and present, in whole sectors; it cannot be made smaller by anybody. kUnavailable: none
  // to be had.
  static Result<std::unique_ptr<SharedMemory>> Create(uint64_t size);
  // Maps the first `size` bytes of a peer's descriptor, which it takes over. kInvalid when touching
  // them could end this process: not plain memory, shorter, or not sealed against being made
  // shorter. kUnavailable: it cannot be mapped.
  static Result<std::unique_ptr<SharedMemory>> Adopt(int fd, uint64_t size);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  MutableByteSpan span() const { return {base_, size_}; }
  int fd() const { return fd_; }
  // Of the descriptor: what a peer must map to reach all of it.
  uint64_t file_size() const { return file_size_; }

  // Where the bytes of `part` (within span()) are, for who maps the descriptor: in order.
  struct Extent {
    uint64_t file_offset = 0;
    uint64_t size = 0;
  };
  std::vector<Extent> ExtentsOf(ByteSpan part) const;

  // Puts other memory, with any content, at the same addresses, at the end of a file that grows:
  // what a peer still writes to the old memory does not arrive. Whole sectors. On failure
  // (kUnavailable) nothing has changed.
  Status Replace(MutableByteSpan part);

 private:
  SharedMemory(int fd, uint8_t* base, uint64_t size);

  const int fd_;
  uint8_t* const base_;
  const uint64_t size_;
  uint64_t file_size_;
  std::map<uint64_t, uint64_t> files_;  // Offset in span() -> in the file, from there on.
};

}  // namespace cairn::kv
