// How a row of the table of settings is made from the member that it sets.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kvstore/base/result.h"
#include "kvstore/base/time.h"
#include "kvstore/config/config_fields.h"

namespace cairn::kv {

// kInvalid with `message`.
Status Bad(std::string message);
std::string Quoted(std::string_view text);
std::string FormatNumber(FieldKind kind, int64_t value);
// kInvalid: no number of the field's kind, or beyond its range; the message says what to write.
Result<int64_t> ParseInRange(const ConfigField& field, std::string_view text);

// `member` is a function DaemonConfig& -> reference to an unsigned member.
template <typename Member>
ConfigField Number(std::string_view key, FieldKind kind, int64_t min, int64_t max,
                   std::string_view help, Member member) {
  ConfigField field{.key = key, .kind = kind, .help = help, .min = min, .max = max};
  field.get = [member, kind](const DaemonConfig& config) {
    DaemonConfig copy = config;
    return FormatNumber(kind, static_cast<int64_t>(member(copy)));
  };
  field.set = [member, row = field](DaemonConfig& config, std::string_view text) {
    KV_ASSIGN_OR_RETURN(const int64_t value, ParseInRange(row, text));
    auto& place = member(config);
    place = static_cast<std::remove_reference_t<decltype(place)>>(value);
    return Status();
  };
  return field;
}

template <typename Member>
ConfigField Duration(std::string_view key, Nanos min, Nanos max, std::string_view help,
                     Member member) {
  return Number(key, FieldKind::kDuration, min.value, max.value, help,
                [member](DaemonConfig& config) -> int64_t& { return member(config).value; });
}

template <typename Member>
ConfigField Text(std::string_view key, std::string_view help, Member member) {
  ConfigField field{.key = key, .kind = FieldKind::kText, .help = help};
  field.get = [member](const DaemonConfig& config) {
    DaemonConfig copy = config;
    return std::string(member(copy));
  };
  field.set = [member](DaemonConfig& config, std::string_view text) {
    const bool control = std::any_of(text.begin(), text.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
    if (control) return Bad("holds a control character");
    member(config) = std::string(text);
    return Status();
  };
  return field;
}

template <typename Member>
ConfigField Flag(std::string_view key, std::string_view help, Member member) {
  ConfigField field{.key = key, .kind = FieldKind::kFlag, .help = help};
  field.get = [member](const DaemonConfig& config) {
    DaemonConfig copy = config;
    return std::string(member(copy) ? "true" : "false");
  };
  field.set = [member](DaemonConfig& config, std::string_view text) {
    if (text != "true" && text != "false") {
      return Bad(Quoted(text).append(" is neither true nor false"));
    }
    member(config) = text == "true";
    return Status();
  };
  return field;
}

// Choice i is the enumerator of value i.
template <typename Member>
ConfigField Choice(std::string_view key, std::vector<std::string_view> choices,
                   std::string_view help, Member member) {
  ConfigField field{.key = key, .kind = FieldKind::kChoice, .help = help, .choices = choices};
  field.get = [member, choices](const DaemonConfig& config) {
    DaemonConfig copy = config;
    return std::string(choices[static_cast<size_t>(member(copy))]);
  };
  field.set = [member, choices](DaemonConfig& config, std::string_view text) {
    const auto found = std::find(choices.begin(), choices.end(), text);
    if (found == choices.end()) {
      std::string known;
      for (const std::string_view choice : choices) {
        known.append(known.empty() ? "" : ", ").append(choice);
      }
      return Bad(Quoted(text).append(" is not one of: ").append(known));
    }
    auto& place = member(config);
    place = static_cast<std::remove_reference_t<decltype(place)>>(found - choices.begin());
    return Status();
  };
  return field;
}

template <typename Member>
ConfigField Real(std::string_view key, double min, double max, std::string_view help,
                 Member member) {
  ConfigField field{.key = key, .kind = FieldKind::kReal, .help = help};
  field.get = [member](const DaemonConfig& config) {
    DaemonConfig copy = config;
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), member(copy)).ptr;
    std::string number(text.data(), end);
    return number.find_first_of(".e") == std::string::npos ? number + ".0" : number;
  };
  field.set = [member, min, max](DaemonConfig& config, std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
      return Bad(Quoted(text).append(" is not a number"));
    }
    if (value < min || value > max) return Bad(Quoted(text).append(" is out of range"));
    member(config) = value;
    return Status();
  };
  return field;
}

// The rows of [cluster].
void AddCluster(std::vector<ConfigField>& fields);

}  // namespace cairn::kv
