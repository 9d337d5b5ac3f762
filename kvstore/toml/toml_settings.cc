// Parses with toml++, whose assertions are made exceptions, and walks over the result.
#include "kvstore/toml/toml_settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace cairn::kv {
namespace {

struct Unexpected {};

[[noreturn]] void GiveUp() { throw Unexpected(); }

}  // namespace
}  // namespace cairn::kv

// With NDEBUG the library takes its assertions for facts, and the compiler believes it.
#undef NDEBUG
#define TOML_ASSERT(condition) ((condition) ? void() : ::cairn::kv::GiveUp())
#define TOML_EXCEPTIONS 1
#undef TOML_SHARED_LIB
#undef TOML_HEADER_ONLY
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace cairn::kv {
namespace {

using Kind = TomlSetting::Kind;

// Tables nest by dots, and their destructors by calls: more of them than this is no configuration.
constexpr int64_t kDotsMax = 4096;

Status Broken(const std::string& name, uint64_t line, std::string_view what) {
  return Status(Code::kInvalid,
                name + ":" + std::to_string(line) + ": " + std::string(what));
}

bool IsAscii(char c) { return static_cast<uint8_t>(c) < 0x80; }

bool IsEscapable(std::string_view text, size_t at) {
  return at < text.size() && text[at] != '\n' && IsAscii(text[at]);
}

// The library takes for impossible what it meets when it looks for white space and finds a letter
// like U+00FC. TOML has those in strings and comments only, where it does not look, unless a string
// has several lines. Returns the line of one that is elsewhere; 0: there is none.
uint64_t LineOfStrayLetter(std::string_view text) {
  const bool multi_line = text.find("\"\"\"") != text.npos || text.find("'''") != text.npos;
  uint64_t line = 1;
  char ends_at = 0;  // What ends the string or comment that we are in; 0: we are in none.
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!IsAscii(c) && (multi_line || ends_at == 0)) return line;
    if (c == '\n') ++line;
    if (c == '\n' || c == ends_at) {
      ends_at = 0;
    } else if (c == '\\' && ends_at == '"' && IsEscapable(text, i + 1)) {
      ++i;
    } else if (ends_at == 0 && (c == '"' || c == '\'')) {
      ends_at = c;
    } else if (ends_at == 0 && c == '#') {
      ends_at = '\n';
    }
  }
  return 0;
}

std::string TextOf(double value) {
  std::array<char, 64> text;
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::string(text.data(), end) : std::string("nan");
}

void Walk(const toml::node& node, const std::string& key, uint64_t line,
          std::vector<TomlSetting>& settings) {
  const auto add = [&](Kind kind, std::string value) {
    settings.push_back({.key = key, .line = line, .kind = kind, .value = std::move(value)});
  };
  if (const toml::table* table = node.as_table()) {
    if (!key.empty()) add(Kind::kTable, "");
    for (const auto& [name, inner] : *table) {
      const std::string part(name.str());
      Walk(inner, key.empty() ? part : key + "." + part, name.source().begin.line, settings);
    }
  } else if (const toml::array* list = node.as_array()) {
    add(Kind::kList, "");
    size_t index = 0;
    for (const toml::node& inner : *list) {
      Walk(inner, key + "." + std::to_string(index++), line, settings);
    }
  } else if (const auto* text = node.as_string()) {
    add(Kind::kText, text->get());
  } else if (const auto* whole = node.as_integer()) {
    add(Kind::kInteger, std::to_string(whole->get()));
  } else if (const auto* real = node.as_floating_point()) {
    add(Kind::kReal, TextOf(real->get()));
  } else if (const auto* flag = node.as_boolean()) {
    add(Kind::kFlag, flag->get() ? "true" : "false");
  } else {
    add(Kind::kOther, "");
  }
}

}  // namespace

Result<std::vector<TomlSetting>> ReadToml(std::string_view text, const std::string& name) {
  if (std::count(text.begin(), text.end(), '.') > kDotsMax) {
    return Broken(name, 1, "it has more than 4096 dots: that is no configuration");
  }
  if (const uint64_t line = LineOfStrayLetter(text); line > 0) {
    return Broken(name, line, "letters beyond ASCII belong into quotes, on one line, or comments");
  }
  try {
    const toml::table document = toml::parse(text, name);
    std::vector<TomlSetting> settings;
    Walk(document, "", 1, settings);
    return settings;
  } catch (const toml::parse_error& error) {
    return Broken(name, error.source().begin.line, error.description());
  } catch (const Unexpected&) {
    return Broken(name, 1, "it is not TOML, and the parser cannot say where");
  }
}

}  // namespace cairn::kv
