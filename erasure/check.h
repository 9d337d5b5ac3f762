// Ends the process when a promise between this folder and its callers is broken.
#pragma once

namespace cairn::erasure {

[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace cairn::erasure

// On in release builds too. Only the standard library is used here, hence a check of its own.
#define ERASURE_CHECK(condition)                                                 \
  ((condition) ? static_cast<void>(0)                                            \
               : ::cairn::erasure::CheckFailed(#condition, __FILE__, __LINE__))
