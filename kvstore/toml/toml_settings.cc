// Parses with toml++, whose assertions are made exceptions, and walks over the result.
#include "kvstore/toml/toml_settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "kvstore/toml/plain_letters.h"

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

bool HasEscapes(std::string_view text) {
  return text.find("\\u") != text.npos || text.find("\\U") != text.npos;
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
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  PlainLetters letters;
  const std::string plain = letters.Exchange(text);
  if (!letters.mistake().empty()) return Broken(name, letters.line(), letters.mistake());
  // An escape may name a letter that stands for another one now.
  if (letters.any() && HasEscapes(text)) {
    return Broken(name, 1, "write all letters as they are, or all as \\u escapes");
  }
  try {
    const toml::table document = toml::parse(plain, name);
    std::vector<TomlSetting> settings;
    Walk(document, "", 1, settings);
    for (TomlSetting& setting : settings) {
      setting.key = letters.Original(setting.key);
      setting.value = letters.Original(setting.value);
    }
    return settings;
  } catch (const toml::parse_error& error) {
    return Broken(name, error.source().begin.line, letters.Original(error.description()));
  } catch (const Unexpected&) {
    return Broken(name, 1, "it is not TOML, and the parser cannot say where");
  }
}

}  // namespace cairn::kv
