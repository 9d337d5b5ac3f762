// The tables of units, and the one reader and one writer of numbers with them.
#include "tools/planner/quantity.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <span>

namespace cairn::tools {
namespace {

struct NamedUnit {
  std::string_view name;
  double factor;
};

constexpr double kKi = 1024;
constexpr std::array kBytesNames = {NamedUnit{"B", 1},
                                    NamedUnit{"kB", 1e3},
                                    NamedUnit{"KB", 1e3},
                                    NamedUnit{"MB", 1e6},
                                    NamedUnit{"GB", 1e9},
                                    NamedUnit{"TB", 1e12},
                                    NamedUnit{"PB", 1e15},
                                    NamedUnit{"EB", 1e18},
                                    NamedUnit{"KiB", kKi},
                                    NamedUnit{"MiB", kKi* kKi},
                                    NamedUnit{"GiB", 1073741824.0},
                                    NamedUnit{"TiB", 1099511627776.0},
                                    NamedUnit{"PiB", 1125899906842624.0}};
constexpr std::array kRateNames = {NamedUnit{"B/s", 1},
                                   NamedUnit{"MB/s", 1e6},
                                   NamedUnit{"GB/s", 1e9},
                                   NamedUnit{"TB/s", 1e12},
                                   NamedUnit{"MiB/s", kKi* kKi},
                                   NamedUnit{"GiB/s", 1073741824.0},
                                   NamedUnit{"TiB/s", 1099511627776.0},
                                   NamedUnit{"Mb/s", 1e6 / 8},
                                   NamedUnit{"Gb/s", 1e9 / 8},
                                   NamedUnit{"Tb/s", 1e12 / 8}};
constexpr std::array kTimeNames = {NamedUnit{"ms", 1e-3},      NamedUnit{"s", 1},
                                   NamedUnit{"min", 60},       NamedUnit{"h", 3600},
                                   NamedUnit{"d", 86400},      NamedUnit{"w", 7 * 86400},
                                   NamedUnit{"y", 365 * 86400}};
constexpr std::array kTokenNames = {NamedUnit{"", 1},    NamedUnit{"K", 1e3}, NamedUnit{"M", 1e6},
                                    NamedUnit{"G", 1e9}, NamedUnit{"B", 1e9}, NamedUnit{"T", 1e12}};
constexpr std::array kTokenRateNames = {NamedUnit{"/s", 1}, NamedUnit{"K/s", 1e3},
                                        NamedUnit{"M/s", 1e6}, NamedUnit{"G/s", 1e9}};
constexpr std::array kShareNames = {NamedUnit{"", 1}, NamedUnit{"%", 0.01}};
constexpr std::array kPlainNames = {NamedUnit{"", 1}};

struct Kind {
  std::span<const NamedUnit> names;
  std::string_view what;
  std::string_view example;
};

Kind KindOf(Unit unit) {
  switch (unit) {
    case Unit::kBytes:
      return {kBytesNames, "a size", "\"30.73 TB\" or \"100 PiB\""};
    case Unit::kBytesPerSecond:
      return {kRateNames, "a data rate", "\"40 GB/s\" or \"400 Gb/s\""};
    case Unit::kSeconds:
      return {kTimeNames, "a time", "\"180 s\", \"3 d\" or \"5 y\""};
    case Unit::kTokens:
      return {kTokenNames, "a number of tokens", "77000 or \"77 K\""};
    case Unit::kTokensPerSecond:
      return {kTokenRateNames, "a token rate", "\"60 K/s\""};
    case Unit::kShare:
      return {kShareNames, "a share", "0.96 or \"96 %\""};
    case Unit::kPerYear:
      return {kShareNames, "a yearly failure rate", "0.01 or \"1 %\""};
    case Unit::kCount:
      return {kPlainNames, "a plain number", "10"};
    case Unit::kMoney:
      return {kPlainNames, "an amount without a currency sign", "0.02"};
  }
  return {};
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Four significant digits; whole numbers stay whole.
std::string Digits(double value) {
  const double size = std::abs(value);
  const bool whole = std::abs(value - std::round(value)) < 1e-6 * size;
  if (whole && size < 1e15) return WithCommas(value, 0);
  if (size >= 1000 || value == 0) return WithCommas(value, 0);
  if (size >= 100) return WithCommas(value, 1);
  if (size >= 1) return WithCommas(value, 2);
  return fmt::format("{:.3g}", value);
}

std::string Scaled(double value, std::span<const NamedUnit> names) {
  const NamedUnit* best = &names[0];
  for (const NamedUnit& name : names) {
    if (std::abs(value) >= name.factor && name.factor >= best->factor) best = &name;
  }
  return fmt::format("{}{}{}", Digits(value / best->factor), best->name.empty() ? "" : " ",
                     best->name);
}

}  // namespace

kv::Result<double> ParseQuantity(std::string_view text, Unit unit) {
  const Kind kind = KindOf(unit);
  const std::string copy(Trim(text));
  char* end = nullptr;
  const double number = std::strtod(copy.c_str(), &end);
  const std::string_view suffix = Trim(std::string_view(end));
  if (end == copy.c_str() || !std::isfinite(number)) {
    return kv::Status(kv::Code::kInvalid, fmt::format("'{}' is no number; {} is wanted, such as {}",
                                                      text, kind.what, kind.example));
  }
  for (const NamedUnit& name : kind.names) {
    if (name.name == suffix) return number * name.factor;
  }
  const std::string complaint = suffix.empty()
                                    ? fmt::format("'{}' has no unit", text)
                                    : fmt::format("'{}' has the wrong unit '{}'", text, suffix);
  return kv::Status(kv::Code::kInvalid, fmt::format("{}; {} is wanted, such as {}", complaint,
                                                    kind.what, kind.example));
}

std::string FormatQuantity(double value, Unit unit) {
  static constexpr std::array kShownBytes = {NamedUnit{"B", 1},     NamedUnit{"KB", 1e3},
                                             NamedUnit{"MB", 1e6},  NamedUnit{"GB", 1e9},
                                             NamedUnit{"TB", 1e12}, NamedUnit{"PB", 1e15}};
  static constexpr std::array kShownRates = {NamedUnit{"B/s", 1}, NamedUnit{"MB/s", 1e6},
                                             NamedUnit{"GB/s", 1e9}, NamedUnit{"TB/s", 1e12}};
  static constexpr std::array kShownTimes = {NamedUnit{"s", 1}, NamedUnit{"min", 60},
                                             NamedUnit{"h", 3600}, NamedUnit{"d", 86400},
                                             NamedUnit{"y", 365 * 86400}};
  static constexpr std::array kShownTokens = {NamedUnit{"", 1}, NamedUnit{"M", 1e6},
                                              NamedUnit{"G", 1e9}, NamedUnit{"T", 1e12}};
  switch (unit) {
    case Unit::kBytes:
      return Scaled(value, kShownBytes);
    case Unit::kBytesPerSecond:
      return Scaled(value, kShownRates);
    case Unit::kTokens:
      return Scaled(value, kShownTokens);
    case Unit::kTokensPerSecond:
      return Scaled(value, kShownTokens) + " /s";
    case Unit::kShare:
      return fmt::format("{:.1f} %", value * 100);
    case Unit::kPerYear:
      return fmt::format("{:.3g} /y", value);
    case Unit::kMoney:
      return WithCommas(value, std::abs(value) < 10'000 ? 2 : 0);
    case Unit::kCount:
      return Digits(value);
    case Unit::kSeconds:
      break;
  }
  // A unit is used for whole numbers of it, and from twice its length on: "1 h", "100 min", "5.06
  // d".
  for (size_t i = kShownTimes.size(); i-- > 1;) {
    const double count = value / kShownTimes[i].factor;
    const bool whole = count >= 1 && std::abs(count - std::round(count)) < 1e-9 * count;
    if (whole || std::abs(count) >= 2)
      return fmt::format("{} {}", Digits(count), kShownTimes[i].name);
  }
  return Digits(value) + " s";
}

std::string WithCommas(double value, int decimals) {
  std::string digits = fmt::format("{:.{}f}", value, decimals);
  const size_t point = digits.find('.');
  const size_t first = digits[0] == '-' ? 1 : 0;
  for (size_t at = point == std::string::npos ? digits.size() : point; at > first + 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

}  // namespace cairn::tools
