// The values of the template language: what variables hold and expressions give.
#include "engine/tokens/jinja_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace cairn::engine::jinja {
namespace {

std::string PrintFloat(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const double magnitude = std::fabs(value);
  char buffer[64];
  const bool plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer, end.ptr);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string PrintPlain(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return "";
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return value.boolean() ? "True" : "False";
    case Kind::kInt:
      return std::to_string(value.integer());
    case Kind::kFloat:
      return PrintFloat(value.number());
    default:
      return std::string("<").append(value.KindName()).append(">");
  }
}

// Calls `escape(byte, output)` for each byte; it returns false to have the byte kept.
template <typename Escape>
void AppendEscaped(const Text& text, Escape escape, Text& target) {
  target.Append(text.MapStretches([&](std::string_view stretch) {
    std::string output;
    for (const char c : stretch) {
      if (!escape(static_cast<uint8_t>(c), output)) output += c;
    }
    return output;
  }));
}

bool EscapeControl(uint8_t c, const char* format, std::string& output) {
  if (c == '\n') return output += "\\n", true;
  if (c == '\r') return output += "\\r", true;
  if (c == '\t') return output += "\\t", true;
  if (c == '\\') return output += "\\\\", true;
  if (c >= 0x20 && c != 0x7F) return false;
  char buffer[8];
  std::snprintf(buffer, sizeof(buffer), format, c);
  output += buffer;
  return true;
}

// Python's repr(), which str() of lists and maps is made of.
void AppendRepr(const Value& value, Text& target) {
  const auto put = [&target](std::string_view text) { target.Append(text, Trust::kTrusted); };
  if (value.is(Kind::kText)) {
    const bool has_single = value.bytes().find('\'') != std::string::npos;
    const bool has_double = value.bytes().find('"') != std::string::npos;
    const char quote = has_single && !has_double ? '"' : '\'';
    put({&quote, 1});
    AppendEscaped(
        value.text(),
        [quote](uint8_t c, std::string& output) {
          if (c == static_cast<uint8_t>(quote)) {
            output += '\\';
            output += quote;
            return true;
          }
          return EscapeControl(c, "\\x%02x", output);
        },
        target);
    put({&quote, 1});
  } else if (value.is(Kind::kList)) {
    put("[");
    for (size_t i = 0; i < value.list().size(); ++i) {
      if (i != 0) put(", ");
      AppendRepr(value.list()[i], target);
    }
    put("]");
  } else if (value.is(Kind::kMap)) {
    put("{");
    bool first = true;
    for (const Entry& entry : value.map()) {
      if (!first) put(", ");
      first = false;
      AppendRepr(Value::Of(entry.key), target);
      put(": ");
      AppendRepr(entry.value, target);
    }
    put("}");
  } else {
    put(value.is(Kind::kUndefined) ? "Undefined" : PrintPlain(value));
  }
}

class JsonWriter {
 public:
  JsonWriter(std::optional<uint32_t> indent, Text& target) : indent_(indent), target_(target) {}

  void Write(const Value& value, uint32_t level) {
    switch (value.kind()) {
      case Kind::kText:
        return WriteText(value.text());
      case Kind::kList:
        return WriteList(value.list(), level);
      case Kind::kMap:
      case Kind::kNamespace:
        return WriteMap(value.map(), level);
      case Kind::kBool:
        return Put(value.boolean() ? "true" : "false");
      case Kind::kInt:
      case Kind::kFloat:
        return Put(PrintPlain(value));
      default:
        return Put("null");
    }
  }

 private:
  void Put(std::string_view text) { target_.Append(text, Trust::kTrusted); }

  void WriteText(const Text& text) {
    Put("\"");
    AppendEscaped(
        text,
        [](uint8_t c, std::string& output) {
          if (c == '"') return output += "\\\"", true;
          if (c == '\b') return output += "\\b", true;
          if (c == '\f') return output += "\\f", true;
          if (c == 0x7F) return false;
          return EscapeControl(c, "\\u%04x", output);
        },
        target_);
    Put("\"");
  }

  void WriteList(const List& items, uint32_t level) {
    if (items.empty()) return Put("[]");
    Put("[");
    for (size_t i = 0; i < items.size(); ++i) {
      Separate(i, level + 1);
      Write(items[i], level + 1);
    }
    Close(level, "]");
  }

  void WriteMap(const Map& entries, uint32_t level) {
    if (entries.empty()) return Put("{}");
    Put("{");
    for (size_t i = 0; i < entries.size(); ++i) {
      Separate(i, level + 1);
      WriteText(entries[i].key);
      Put(": ");
      Write(entries[i].value, level + 1);
    }
    Close(level, "}");
  }

  void PutLine(uint32_t level) {
    Put("\n");
    Put(std::string(size_t{*indent_} * level, ' '));
  }
  void Separate(size_t index, uint32_t level) {
    if (index != 0) Put(indent_ ? "," : ", ");
    if (indent_) PutLine(level);
  }
  void Close(uint32_t level, std::string_view bracket) {
    if (indent_) PutLine(level);
    Put(bracket);
  }

  const std::optional<uint32_t> indent_;
  Text& target_;
};

bool MapsEqual(const Map& a, const Value& b) {
  if (a.size() != b.map().size()) return false;
  return std::all_of(a.begin(), a.end(), [&b](const Entry& entry) {
    const Value* other = b.Find(entry.key.bytes());
    return other != nullptr && entry.value.Equals(*other);
  });
}

}  // namespace

Value Value::None() {
  Value value;
  value.kind_ = Kind::kNone;
  return value;
}
Value Value::Of(bool boolean) {
  Value value;
  value.kind_ = Kind::kBool;
  value.integer_ = boolean ? 1 : 0;
  return value;
}
Value Value::Of(int64_t integer) {
  Value value;
  value.kind_ = Kind::kInt;
  value.integer_ = integer;
  return value;
}
Value Value::Of(double real) {
  Value value;
  value.kind_ = Kind::kFloat;
  value.real_ = real;
  return value;
}
Value Value::Of(Text text) {
  Value value;
  value.kind_ = Kind::kText;
  value.weight_ += text.size();
  value.text_ = std::make_shared<const Text>(std::move(text));
  return value;
}
Value Value::Of(List items) {
  Value value;
  value.kind_ = Kind::kList;
  value.depth_ = 1;
  for (const Value& item : items) value.AddWeight(item);
  value.list_ = std::make_shared<const List>(std::move(items));
  return value;
}
Value Value::Of(Map entries) {
  Value value;
  value.kind_ = Kind::kMap;
  value.depth_ = 1;
  for (const Entry& entry : entries) {
    value.weight_ += entry.key.size();
    value.AddWeight(entry.value);
  }
  value.map_ = std::make_shared<Map>(std::move(entries));
  return value;
}
Value Value::Namespace(Map entries) {
  Value value = Of(std::move(entries));
  value.kind_ = Kind::kNamespace;
  return value;
}
void Value::AddWeight(const Value& part) {
  depth_ = std::max(depth_, part.depth_ + 1);
  weight_ += part.weight_;
}
Value Value::Macro(const Statement* macro) {
  Value value;
  value.kind_ = Kind::kMacro;
  value.macro_ = macro;
  return value;
}
Value Value::Function(std::string_view name) {
  Value value = Trusted(name);
  value.kind_ = Kind::kFunction;
  return value;
}

bool Value::Truthy() const {
  switch (kind_) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return integer_ != 0;
    case Kind::kFloat:
      return real_ != 0.0;
    case Kind::kText:
      return !text_->empty();
    case Kind::kList:
      return !list_->empty();
    case Kind::kMap:
      return !map_->empty();
    default:
      return true;
  }
}

bool Value::Equals(const Value& other) const {
  if (IsNumber() && other.IsNumber()) {
    if (is(Kind::kFloat) || other.is(Kind::kFloat)) return number() == other.number();
    return integer_ == other.integer_;
  }
  if (kind_ != other.kind_) return false;
  switch (kind_) {
    case Kind::kText:
    case Kind::kFunction:
      return bytes() == other.bytes();
    case Kind::kList:
      return std::equal(list_->begin(), list_->end(), other.list_->begin(), other.list_->end(),
                        [](const Value& a, const Value& b) { return a.Equals(b); });
    case Kind::kMap:
      return MapsEqual(*map_, other);
    case Kind::kNamespace:
      return map_ == other.map_;
    case Kind::kMacro:
      return macro_ == other.macro_;
    default:
      return true;  // Undefined and none have one value each.
  }
}

const Value* Value::Find(std::string_view key) const {
  for (const Entry& entry : *map_) {
    if (entry.key.bytes() == key) return &entry.value;
  }
  return nullptr;
}

Text Value::Print() const {
  if (kind_ == Kind::kText) return *text_;
  if (kind_ == Kind::kList || kind_ == Kind::kMap) {
    Text text;
    AppendRepr(*this, text);
    return text;
  }
  return Text(PrintPlain(*this), Trust::kTrusted);
}

std::string_view Value::KindName() const {
  static constexpr std::string_view kNames[] = {
      "undefined", "none",  "a boolean",   "an integer", "a number",  "a string",
      "a list",    "a map", "a namespace", "a macro",    "a function"};
  return kNames[static_cast<size_t>(kind_)];
}

Text ToJson(const Value& value, std::optional<uint32_t> indent) {
  Text text;
  JsonWriter(indent, text).Write(value, 0);
  return text;
}

}  // namespace cairn::engine::jinja
