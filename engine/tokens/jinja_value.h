// The values of the template language: what variables hold and expressions give.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/tokens/jinja_text.h"

namespace cairn::engine::jinja {

struct Statement;
class Value;

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kText,
  kList,
  kMap,
  kNamespace,  // A map whose entries may be set; the only value that changes.
  kMacro,
  kFunction,  // One of the built-in ones, by name.
};

using List = std::vector<Value>;
struct Entry;
using Map = std::vector<Entry>;  // In order of insertion; small.

// Texts, lists and maps are immutable and shared by all values that hold them: a loop over messages
// copies no content. shared_ptr, since values have no single owner.
class Value {
 public:
  Value() = default;
  static Value None();
  static Value Of(bool value);
  static Value Of(int64_t value);
  static Value Of(double value);
  static Value Of(Text text);
  static Value Trusted(std::string_view text) { return Of(Text(text, Trust::kTrusted)); }
  static Value Untrusted(std::string_view text) { return Of(Text(text, Trust::kUntrusted)); }
  static Value Of(List items);
  static Value Of(Map entries);
  static Value Namespace(Map entries);
  static Value Macro(const Statement* macro);
  static Value Function(std::string_view name);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool IsNumber() const { return kind_ == Kind::kInt || kind_ == Kind::kFloat || is(Kind::kBool); }

  bool boolean() const { return integer_ != 0; }
  int64_t integer() const { return integer_; }  // Of kInt and kBool.
  double number() const { return is(Kind::kFloat) ? real_ : static_cast<double>(integer_); }
  const Text& text() const { return *text_; }
  const std::string& bytes() const { return text_->bytes(); }
  const List& list() const { return *list_; }
  const Map& map() const { return *map_; }      // Of kMap and kNamespace.
  Map& namespace_map() const { return *map_; }  // Of kNamespace.
  const Statement* macro() const { return macro_; }

  // How deep lists and maps lie in one another (0 for everything else), and about how many bytes
  // they print as. Both are limited where values are made, since printing recurses.
  uint32_t depth() const { return depth_; }
  uint64_t weight() const { return weight_; }

  bool Truthy() const;
  // As Python compares: 1 == 1.0, "a" == "a" whatever their trust.
  bool Equals(const Value& other) const;
  // Of a map or namespace. Null when absent.
  const Value* Find(std::string_view key) const;
  // What {{ value }} prints: Python's str().
  Text Print() const;
  // "a string", "a list": for messages.
  std::string_view KindName() const;

 private:
  void AddWeight(const Value& part);

  Kind kind_ = Kind::kUndefined;
  uint32_t depth_ = 0;
  uint64_t weight_ = 1;
  int64_t integer_ = 0;
  double real_ = 0.0;
  std::shared_ptr<const Text> text_;
  std::shared_ptr<const List> list_;
  std::shared_ptr<Map> map_;
  const Statement* macro_ = nullptr;
};

struct Entry {
  Text key;
  Value value;
};

// As json.dumps(value, ensure_ascii=False, indent=indent) of Python; nullopt is one line.
Text ToJson(const Value& value, std::optional<uint32_t> indent);

}  // namespace cairn::engine::jinja
