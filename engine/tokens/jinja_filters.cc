// The filters of the template language: `value | name(arguments)`.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/tokens/jinja_builtins.h"
#include "engine/tokens/jinja_strings.h"

namespace cairn::engine::jinja {
namespace {

using kv::Result;
using kv::Status;
using Filter = Result<Value> (*)(const Call&);

Result<Value> Trim(const Call& call) {
  KV_ASSIGN_OR_RETURN(const Text* set, call.TextArgument(0, "chars"));
  return Value::Of(Strip(call.subject.Print(), Side::kBoth, set));
}

Result<Value> Length(const Call& call) {
  const Value& value = call.subject;
  size_t length = 0;
  if (value.is(Kind::kText)) {
    length = CharacterOffsets(value.text()).size() - 1;
  } else if (value.is(Kind::kList)) {
    length = value.list().size();
  } else if (value.is(Kind::kMap)) {
    length = value.map().size();
  } else if (!value.is(Kind::kUndefined)) {
    return call.Error("works on strings, lists and maps, not on " + std::string(value.KindName()));
  }
  return Value::Of(static_cast<int64_t>(length));
}

template <Text (*kChange)(const Text&)>
Result<Value> ChangeText(const Call& call) {
  return Value::Of(kChange(call.subject.Print()));
}

Result<Value> Join(const Call& call) {
  KV_ASSIGN_OR_RETURN(const Text* separator, call.TextArgument(0, "d"));
  KV_ASSIGN_OR_RETURN(const Text* attribute, call.TextArgument(1, "attribute"));
  KV_ASSIGN_OR_RETURN(const List items, Iterate(call.subject, call.line));
  Text result;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i != 0 && separator != nullptr) result.Append(*separator);
    Value item = items[i];
    if (attribute != nullptr) {
      KV_ASSIGN_OR_RETURN(item, GetItem(items[i], Value::Of(*attribute), call.line));
    }
    result.Append(item.Print());
    if (result.size() > kTextBytesMax) return call.Error("makes too long a text");
  }
  return Value::Of(std::move(result));
}

Result<Value> Default(const Call& call) {
  const Value* otherwise = call.Argument(0, "default_value");
  const Value* boolean = call.Argument(1, "boolean");
  const bool by_truth = boolean != nullptr && boolean->Truthy();
  const bool absent = by_truth ? !call.subject.Truthy() : call.subject.is(Kind::kUndefined);
  if (!absent) return call.subject;
  return otherwise != nullptr ? *otherwise : Value::Trusted("");
}

Result<Value> Json(const Call& call) {
  std::optional<uint32_t> indent;
  if (const Value* value = call.Argument(0, "indent"); value != nullptr) {
    if (value->is(Kind::kInt) && value->integer() >= 0 && value->integer() <= 16) {
      indent = static_cast<uint32_t>(value->integer());
    } else if (!value->is(Kind::kNone)) {
      return call.Error("takes an indent from 0 to 16");
    }
  }
  return Value::Of(ToJson(call.subject, indent));
}

Result<Value> First(const Call& call) {
  KV_ASSIGN_OR_RETURN(const List items, Iterate(call.subject, call.line));
  return items.empty() ? Value() : items.front();
}

Result<Value> Last(const Call& call) {
  KV_ASSIGN_OR_RETURN(const List items, Iterate(call.subject, call.line));
  return items.empty() ? Value() : items.back();
}

Result<Value> ToText(const Call& call) { return Value::Of(call.subject.Print()); }

Result<Value> ToInt(const Call& call) {
  const Value& value = call.subject;
  if (value.is(Kind::kInt) || value.is(Kind::kBool)) return Value::Of(value.integer());
  if (value.is(Kind::kFloat) && std::fabs(value.number()) < 9e18) {
    return Value::Of(static_cast<int64_t>(value.number()));
  }
  if (value.is(Kind::kText)) {
    const Text digits = Strip(value.text(), Side::kBoth, nullptr);
    const char* end = digits.bytes().data() + digits.size();
    int64_t integer = 0;
    const auto read = std::from_chars(digits.bytes().data(), end, integer);
    if (read.ec == std::errc() && read.ptr == end) return Value::Of(integer);
  }
  const Value* otherwise = call.Argument(0, "default");
  return otherwise != nullptr ? *otherwise : Value::Of(int64_t{0});
}

Result<Value> ToList(const Call& call) {
  KV_ASSIGN_OR_RETURN(List items, Iterate(call.subject, call.line));
  return Value::Of(std::move(items));
}

Result<Value> ReplaceAll(const Call& call) {
  KV_ASSIGN_OR_RETURN(const Text* from, call.TextArgument(0, "old"));
  KV_ASSIGN_OR_RETURN(const Text* to, call.TextArgument(1, "new"));
  if (from == nullptr || to == nullptr || from->empty()) return call.Error("takes two strings");
  const Text text = call.subject.Print();
  const size_t growth = CountOf(text.bytes(), from->bytes());
  if (growth * to->size() > kTextBytesMax) return call.Error("makes too long a text");
  return Value::Of(Replace(text, from->bytes(), *to, -1));
}

Result<Value> Items(const Call& call) {
  List items;
  if (call.subject.is(Kind::kUndefined)) return Value::Of(std::move(items));
  if (!call.subject.is(Kind::kMap)) return call.Error("works on maps");
  for (const Entry& entry : call.subject.map()) {
    items.push_back(Value::Of(List{Value::Of(entry.key), entry.value}));
  }
  return Value::Of(std::move(items));
}

Result<Value> Reverse(const Call& call) {
  KV_ASSIGN_OR_RETURN(List items, Iterate(call.subject, call.line));
  std::reverse(items.begin(), items.end());
  if (!call.subject.is(Kind::kText)) return Value::Of(std::move(items));
  Text text;
  for (const Value& item : items) text.Append(item.text());
  return Value::Of(std::move(text));
}

Result<Value> Unchanged(const Call& call) { return call.subject; }

Result<Value> Absolute(const Call& call) {
  const Value& value = call.subject;
  if (value.is(Kind::kFloat)) return Value::Of(std::fabs(value.number()));
  if (!value.IsNumber() || value.integer() == INT64_MIN) return call.Error("works on numbers");
  return Value::Of(value.integer() < 0 ? -value.integer() : value.integer());
}

Result<Value> EscapeHtml(const Call& call) {
  Text result = call.subject.Print();
  static constexpr std::string_view kPairs[][2] = {
      {"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&#34;"}, {"'", "&#39;"}};
  for (const auto& [from, to] : kPairs) {
    if (result.size() > kTextBytesMax) return call.Error("makes too long a text");
    result = Replace(result, from, Text(to, Trust::kTrusted), -1);
  }
  return Value::Of(std::move(result));
}

// The rest of the arguments as those of a test or filter that is named by the one at `index`.
Call Inner(const Call& call, size_t index, Value subject) {
  Call inner(call.arguments[index].bytes(), call.line);
  inner.subject = std::move(subject);
  inner.arguments.assign(call.arguments.begin() + static_cast<std::ptrdiff_t>(index) + 1,
                         call.arguments.end());
  return inner;
}

// select, reject, selectattr, rejectattr: the items that pass, or fail, a test.
Result<Value> Select(const Call& call) {
  const bool keep = call.name.starts_with("select");
  const bool by_attribute = call.name.ends_with("attr");
  const size_t test_at = by_attribute ? 1 : 0;
  for (size_t i = 0; i < std::min(call.arguments.size(), test_at + 1); ++i) {
    if (!call.arguments[i].is(Kind::kText)) return call.Error("takes names as strings");
  }
  if (by_attribute && call.arguments.empty()) return call.Error("takes an attribute");
  KV_ASSIGN_OR_RETURN(const List items, Iterate(call.subject, call.line));
  List result;
  for (const Value& item : items) {
    Value tested = item;
    if (by_attribute) {
      KV_ASSIGN_OR_RETURN(tested, GetItem(item, call.arguments[0], call.line));
    }
    bool passes = tested.Truthy();
    if (call.arguments.size() > test_at) {
      KV_ASSIGN_OR_RETURN(passes, ApplyTest(Inner(call, test_at, std::move(tested))));
    }
    if (passes == keep) result.push_back(item);
  }
  return Value::Of(std::move(result));
}

Result<Value> MapItems(const Call& call) {
  KV_ASSIGN_OR_RETURN(const List items, Iterate(call.subject, call.line));
  const size_t positional = call.arguments.size() - call.names.size();
  const Value* attribute = positional == 0 ? call.Argument(0, "attribute") : nullptr;
  if (attribute == nullptr && (positional == 0 || !call.arguments[0].is(Kind::kText))) {
    return call.Error("takes a filter or an attribute");
  }
  if (attribute == nullptr && call.arguments[0].bytes() == "map") {
    return call.Error("does not take itself");
  }
  List result;
  for (const Value& item : items) {
    Result<Value> mapped = attribute != nullptr ? GetItem(item, *attribute, call.line)
                                                : ApplyFilter(Inner(call, 0, item));
    if (!mapped.ok()) return mapped.status();
    result.push_back(std::move(mapped).value());
  }
  return Value::Of(std::move(result));
}

Result<Value> Unique(const Call& call) {
  KV_ASSIGN_OR_RETURN(const List items, Iterate(call.subject, call.line));
  if (items.size() > 1000) return call.Error("is for short lists");
  List result;
  for (const Value& item : items) {
    const bool known = std::any_of(result.begin(), result.end(),
                                   [&item](const Value& other) { return other.Equals(item); });
    if (!known) result.push_back(item);
  }
  return Value::Of(std::move(result));
}

// Lines after the first (and the first too, if asked) begin with `width` spaces; empty ones do not.
Result<Value> Indent(const Call& call) {
  const Value* width = call.Argument(0, "width");
  const Value* first = call.Argument(1, "first");
  const int64_t count = width == nullptr ? 4 : width->is(Kind::kInt) ? width->integer() : -1;
  if (count < 0 || count > 64) return call.Error("takes a width from 0 to 64");
  const Text blanks(std::string(static_cast<size_t>(count), ' '), Trust::kTrusted);
  const List lines = Split(call.subject.Print(), nullptr, 0).empty()
                         ? List{Value::Of(call.subject.Print())}
                         : SplitLines(call.subject.Print());
  Text result;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i != 0) result.Append("\n", Trust::kTrusted);
    const bool indented = i != 0 || (first != nullptr && first->Truthy());
    if (indented && !lines[i].text().empty()) result.Append(blanks);
    result.Append(lines[i].text());
    if (result.size() > kTextBytesMax) return call.Error("makes too long a text");
  }
  return Value::Of(std::move(result));
}

struct NamedFilter {
  std::string_view name;
  Filter filter;
};

constexpr NamedFilter kFilters[] = {
    {"trim", Trim},
    {"length", Length},
    {"count", Length},
    {"upper", ChangeText<Upper>},
    {"lower", ChangeText<Lower>},
    {"capitalize", ChangeText<Capitalize>},
    {"title", ChangeText<Title>},
    {"join", Join},
    {"default", Default},
    {"d", Default},
    {"tojson", Json},
    {"first", First},
    {"last", Last},
    {"string", ToText},
    {"int", ToInt},
    {"list", ToList},
    {"replace", ReplaceAll},
    {"items", Items},
    {"reverse", Reverse},
    {"safe", Unchanged},
    {"abs", Absolute},
    {"escape", EscapeHtml},
    {"e", EscapeHtml},
    {"select", Select},
    {"reject", Select},
    {"selectattr", Select},
    {"rejectattr", Select},
    {"map", MapItems},
    {"unique", Unique},
    {"indent", Indent},
};

}  // namespace

Result<Value> ApplyFilter(const Call& call) {
  for (const NamedFilter& known : kFilters) {
    if (known.name == call.name) return known.filter(call);
  }
  return call.Error("is no filter that is known");
}

}  // namespace cairn::engine::jinja
