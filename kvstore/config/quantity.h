// Sizes and times as people write them, "64 MiB" and "250 ms": read exactly, written back the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kvstore/base/result.h"
#include "kvstore/base/time.h"

namespace cairn::kv {

// B, KiB, MiB, GiB, TiB, and KB, MB, GB, TB (powers of 1,000). "0" needs no unit; anything else
// does, as a bare 64 could be anything. Fractions must come out whole: "1.5 KiB". kInvalid says
// what to write.
Result<uint64_t> ParseBytes(std::string_view text);

// ns, us, ms, s, min, h, d. "0" needs no unit.
Result<Nanos> ParseDuration(std::string_view text);

// With the largest unit in which it is a whole number: ParseBytes(FormatBytes(x)) == x.
std::string FormatBytes(uint64_t bytes);
std::string FormatDuration(Nanos span);

// For people: three digits, "1.46 TiB", "12.3 ms".
std::string RoughBytes(double bytes);
std::string RoughDuration(Nanos span);

}  // namespace cairn::kv
