// The table of settings: one row says key, meaning, default, range and where it is kept.
//
// The file reader, the flags, the example file and the manual page all walk this one table.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvstore/base/status.h"
#include "kvstore/config/daemon_config.h"

namespace cairn::kv {

enum class FieldKind : uint8_t { kText, kChoice, kFlag, kCount, kReal, kBytes, kDuration };

struct ConfigField {
  std::string_view key;   // "store.target_size"
  FieldKind kind = FieldKind::kText;
  std::string_view help;  // A sentence or two, for the file, --help and the manual.
  // Of numbers: the least and the most, in the kind's base unit (bytes, nanoseconds).
  int64_t min = 0;
  int64_t max = 0;
  std::vector<std::string_view> choices = {};  // Of kChoice, by value.

  // As it would stand in a file, without quotes: "64 MiB", "true", "/var/lib/cairn".
  std::function<std::string(const DaemonConfig&)> get = {};
  // kInvalid, for people, and nothing is changed: not of the kind, or out of range.
  std::function<Status(DaemonConfig&, std::string_view)> set = {};
};

// In the order of the example file; fields of one section are next to each other.
std::span<const ConfigField> ConfigFields();

// Null when there is none.
const ConfigField* FindField(std::string_view key);

// The known key that is most like `key`: for "did you mean". Empty when none is alike.
std::string_view NearestKey(std::string_view key);

struct ConfigSection {
  std::string_view name;
  std::string_view help;
};
std::span<const ConfigSection> ConfigSections();

}  // namespace cairn::kv
