// Escapes strings, and finds where a text stops being JSON.
#include "gateway/api/json_text.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace cairn::gateway {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD.

bool IsContinuation(std::string_view text, size_t at) {
  return at < text.size() && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80;
}

// Bytes of the valid UTF-8 character that `text` begins with, or 0 (Unicode 15, table 3-7).
size_t CharacterBytes(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4 || !IsContinuation(text, 1)) return 0;
  if (first < 0xE0) return 2;
  const auto second = static_cast<uint8_t>(text[1]);
  if (!IsContinuation(text, 2)) return 0;
  if (first < 0xF0) {
    const bool overlong = first == 0xE0 && second < 0xA0;
    const bool surrogate = first == 0xED && second > 0x9F;
    return overlong || surrogate ? 0 : 3;
  }
  const bool overlong = first == 0xF0 && second < 0x90;
  const bool beyond = first == 0xF4 && second > 0x8F;
  return overlong || beyond || !IsContinuation(text, 3) ? 0 : 4;
}

void AppendEscaped(std::string& json, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (c) {
    case '"':
      json += "\\\"";
      return;
    case '\\':
      json += "\\\\";
      return;
    case '\n':
      json += "\\n";
      return;
    case '\r':
      json += "\\r";
      return;
    case '\t':
      json += "\\t";
      return;
    default:
      break;
  }
  const auto code = static_cast<uint8_t>(c);
  if (code >= 0x20) {
    json += c;
    return;
  }
  json += "\\u00";
  json += kHex[code >> 4];
  json += kHex[code & 15];
}

// Listens to a parse for nothing but the place of its first error.
class ErrorPlace final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    at = position;
    return false;
  }

  size_t at = 0;  // One-based; one past the end when the text is cut short.
};

}  // namespace

void AppendJsonString(std::string& json, std::string_view text) {
  json += '"';
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    if (bytes == 1) {
      AppendEscaped(json, text[0]);
    } else if (bytes == 0) {
      json.append(kReplacement);
    } else {
      json.append(text.substr(0, bytes));
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  json += '"';
}

std::string JsonString(std::string_view text) {
  std::string json;
  json.reserve(text.size() + 2);
  AppendJsonString(json, text);
  return json;
}

std::string WhereNotJson(std::string_view text) {
  ErrorPlace place;
  if (nlohmann::json::sax_parse(text, &place)) return "";
  const std::string_view before = text.substr(0, place.at == 0 ? 0 : place.at - 1);
  const auto line = 1 + std::ranges::count(before, '\n');
  const size_t line_start = before.rfind('\n');
  const size_t column =
      before.size() - (line_start == std::string_view::npos ? 0 : line_start + 1) + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

}  // namespace cairn::gateway
