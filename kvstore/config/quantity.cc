// Numbers are decimal text: digits are scaled as integers, so that nothing is lost in a double.
#include "kvstore/config/quantity.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <span>

namespace cairn::kv {
namespace {

struct UnitName {
  std::string_view name;
  uint64_t factor;
};

constexpr std::array<UnitName, 9> kByteUnits = {{{"B", 1},
                                                 {"KiB", uint64_t{1} << 10},
                                                 {"MiB", uint64_t{1} << 20},
                                                 {"GiB", uint64_t{1} << 30},
                                                 {"TiB", uint64_t{1} << 40},
                                                 {"KB", 1'000},
                                                 {"MB", 1'000'000},
                                                 {"GB", 1'000'000'000},
                                                 {"TB", 1'000'000'000'000}}};
constexpr std::array<UnitName, 7> kTimeUnits = {{{"ns", 1},
                                                 {"us", 1'000},
                                                 {"ms", 1'000'000},
                                                 {"s", 1'000'000'000},
                                                 {"min", 60'000'000'000},
                                                 {"h", 3'600'000'000'000},
                                                 {"d", 86'400'000'000'000}}};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

struct Decimal {
  uint64_t digits = 0;    // Of the number without its point.
  uint64_t divisor = 1;   // 10 to the number of digits after it.
  std::string_view unit;  // What follows.
};

// False when `text` does not begin with a number, or with one too long.
bool ReadDecimal(std::string_view text, Decimal& decimal) {
  size_t at = 0;
  bool fraction = false;
  size_t digit_count = 0;
  for (; at < text.size() && (IsDigit(text[at]) || (text[at] == '.' && !fraction)); ++at) {
    if (text[at] == '.') {
      fraction = true;
      continue;
    }
    if (++digit_count > 18) return false;
    decimal.digits = decimal.digits * 10 + static_cast<uint64_t>(text[at] - '0');
    if (fraction) decimal.divisor *= 10;
  }
  if (digit_count == 0) return false;
  while (at < text.size() && text[at] == ' ') ++at;
  decimal.unit = text.substr(at);
  return true;
}

Status Bad(std::string_view text, std::string_view why) {
  return Status(Code::kInvalid,
                std::string("'").append(text).append("' ").append(why));
}

Result<uint64_t> Parse(std::string_view text, std::span<const UnitName> units,
                       std::string_view what_to_write, uint64_t max) {
  Decimal decimal;
  if (!ReadDecimal(text, decimal)) return Bad(text, what_to_write);
  if (decimal.unit.empty() && decimal.digits == 0) return uint64_t{0};
  for (const UnitName& unit : units) {
    if (unit.name != decimal.unit) continue;
    const uint64_t common = std::gcd(unit.factor, decimal.divisor);
    const uint64_t factor = unit.factor / common, divisor = decimal.divisor / common;
    if (decimal.digits % divisor != 0) {
      return Bad(text, "does not come out whole: use a smaller unit");
    }
    if (decimal.digits / divisor > max / factor) return Bad(text, "is too large");
    return decimal.digits / divisor * factor;
  }
  return Bad(text, what_to_write);
}

std::string Format(uint64_t value, std::span<const UnitName> units) {
  if (value == 0) return "0";
  UnitName best = units[0];
  for (const UnitName& unit : units) {
    if (value % unit.factor == 0 && unit.factor > best.factor) best = unit;
  }
  return std::to_string(value / best.factor).append(" ").append(best.name);
}

std::string ThreeDigits(double value, std::string_view unit) {
  const double size = std::abs(value);
  const int decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return std::string(text.data()).append(" ").append(unit);
}

}  // namespace

Result<uint64_t> ParseBytes(std::string_view text) {
  return Parse(text, kByteUnits, "is not a size: write a number and its unit, such as '64 MiB'",
               std::numeric_limits<int64_t>::max());
}

Result<Nanos> ParseDuration(std::string_view text) {
  const auto nanos =
      Parse(text, kTimeUnits, "is not a time: write a number and its unit, such as '250 ms'",
            std::numeric_limits<int64_t>::max());
  if (!nanos.ok()) return nanos.status();
  return Nanos{static_cast<int64_t>(nanos.value())};
}

std::string FormatBytes(uint64_t bytes) {
  return Format(bytes, std::span(kByteUnits).first(5));
}

std::string FormatDuration(Nanos span) {
  if (span.value < 0) {
    return std::string("-").append(Format(static_cast<uint64_t>(-span.value), kTimeUnits));
  }
  return Format(static_cast<uint64_t>(span.value), kTimeUnits);
}

std::string RoughBytes(double bytes) {
  size_t unit = 0;
  while (unit < 4 && bytes >= 1023.5) {
    bytes /= 1024;
    ++unit;
  }
  if (unit > 0) return ThreeDigits(bytes, kByteUnits[unit].name);
  return std::to_string(std::llround(bytes)).append(" B");
}

std::string RoughDuration(Nanos span) {
  size_t unit = 0;
  const auto nanos = static_cast<double>(span.value);
  while (unit + 1 < kTimeUnits.size() &&
         std::abs(nanos) >= 0.9995 * static_cast<double>(kTimeUnits[unit + 1].factor)) {
    ++unit;
  }
  if (unit == 0) return std::to_string(span.value).append(" ns");
  return ThreeDigits(nanos / static_cast<double>(kTimeUnits[unit].factor), kTimeUnits[unit].name);
}

}  // namespace cairn::kv
