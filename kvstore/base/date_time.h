// Calendar times as people and logs write them.
#pragma once

#include <optional>
#include <string>

#include "kvstore/base/time.h"

namespace cairn::kv {

// RFC 3339: 2026-12-31T23:59:59Z, also with a fraction of a second, with an offset such as +02:00
// instead of the Z, and with a space instead of the T. Nothing for any other text.
std::optional<UnixMillis> ParseDateTime(const std::string& text);

}  // namespace cairn::kv
