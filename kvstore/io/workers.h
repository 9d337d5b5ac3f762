// The seam to other threads: run a blocking or heavy call elsewhere, and await it.
#pragma once

#include <functional>
#include <utility>

#include "kvstore/async/task.h"
#include "kvstore/base/checksum.h"
#include "kvstore/base/units.h"

namespace cairn::kv {

class Workers {
 public:
  virtual ~Workers() = default;

  // Runs `call` on some other thread and returns when it is done. `call` must not touch anything
  // that the loop changes meanwhile. In simulation it runs inline and costs virtual time.
  virtual Task<void> Run(std::function<void()> call) = 0;
};

// Work on no more bytes than this is done sooner where they are wanted than it is handed over.
inline constexpr uint64_t kHandOverBytesMin = 256 * kKiB;

// Runs `call`, which works on so many bytes: on a worker, or here when that is sooner.
inline Task<void> RunFor(uint64_t bytes, Workers& workers, std::function<void()> call) {
  if (bytes > kHandOverBytesMin) co_return co_await workers.Run(std::move(call));
  call();
}

// Checksum(bytes). The memory must stay until it is there.
inline Task<uint64_t> ChecksumOn(Workers& workers, ByteSpan bytes) {
  uint64_t checksum = 0;
  std::function<void()> call = [&] { checksum = Checksum(bytes); };
  co_await RunFor(bytes.size(), workers, std::move(call));
  co_return checksum;
}

}  // namespace cairn::kv
