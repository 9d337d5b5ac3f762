// Numbers with units: reading "30.73 TB" and writing it again, with errors that say what to type.
#pragma once

#include <string>
#include <string_view>

#include "kvstore/base/result.h"

namespace cairn::tools {

// What a number means. Values are kept in the base unit named here.
enum class Unit {
  kCount,            // A plain number.
  kShare,            // 0 to 1; "96 %" or 0.96.
  kBytes,            // "30.73 TB", "100 PiB".
  kBytesPerSecond,   // "40 GB/s", and "400 Gb/s" for networks.
  kSeconds,          // "180 s", "3 d", "5 y".
  kTokens,           // "77 K", "155 T"; a plain number too.
  kTokensPerSecond,  // "60 K/s".
  kMoney,            // A plain number; the currency is the scenario's.
  kPerYear,          // Failures per year: "1 %" of devices or 0.01.
};

// kInvalid says which unit was expected, with an example. Numbers of bytes, rates and times need
// their unit: a bare 30.73 could be anything.
kv::Result<double> ParseQuantity(std::string_view text, Unit unit);

// "30.7 TB", "1.28 GB/s", "5.06 d", "96.0 %", "2,370".
std::string FormatQuantity(double value, Unit unit);

// "1,234,567.9": with `decimals` digits after the point.
std::string WithCommas(double value, int decimals);

}  // namespace cairn::tools
