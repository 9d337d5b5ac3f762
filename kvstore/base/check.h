// KV_CHECK: a broken promise of our own stops the process, in release builds too.
#pragma once

namespace cairn::kv {

// Prints `file:line: check failed: condition` to standard error and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace cairn::kv

// One condition per check. For what the world may do wrong (a disk, a peer, a caller's input)
// return a Status instead.
#define KV_CHECK(condition)                                                          \
  do {                                                                               \
    if (!(condition)) [[unlikely]]                                                   \
      ::cairn::kv::CheckFailed(__FILE__, __LINE__, #condition);                      \
  } while (false)
