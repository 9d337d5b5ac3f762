// Asks getrandom until the target is full.
#include "kvstore/os/entropy.h"

#include <sys/random.h>

#include <cerrno>

#include "kvstore/base/check.h"

namespace cairn::kv {

void FillFromKernel(MutableByteSpan target) {
  while (!target.empty()) {
    const ssize_t got = getrandom(target.data(), target.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    KV_CHECK(got > 0);
    target = target.subspan(static_cast<size_t>(got));
  }
}

}  // namespace cairn::kv
