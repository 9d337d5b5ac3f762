// What the programs say when they are asked for their version.
#pragma once

namespace cairn::kv {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace cairn::kv
