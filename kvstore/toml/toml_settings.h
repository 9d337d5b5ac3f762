// A TOML document as a flat list of settings with their lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kvstore/base/result.h"

namespace cairn::kv {

struct TomlSetting {
  // A table or a list comes before what is in it. kOther: a date or a time.
  enum class Kind : uint8_t { kText, kInteger, kReal, kFlag, kTable, kList, kOther };
  std::string key;     // "section.name"; elements of lists: "list.0.name".
  uint64_t line = 0;   // Of the key; of the list for its elements.
  Kind kind = Kind::kText;
  std::string value;   // Of a text, a number or a flag ("true", "false").
};

// kInvalid, as "name:line: what", when it is not TOML.
Result<std::vector<TomlSetting>> ReadToml(std::string_view text, const std::string& name);

}  // namespace cairn::kv
