// The methods of strings and maps in the template language: `value.name(arguments)`.
#include <algorithm>

#include "engine/tokens/jinja_builtins.h"
#include "engine/tokens/jinja_strings.h"
#include "engine/tokens/unicode.h"

namespace cairn::engine::jinja {
namespace {

using kv::Result;
using Method = Result<Value> (*)(const Call&);

template <Side kSide>
Result<Value> StripText(const Call& call) {
  KV_ASSIGN_OR_RETURN(const Text* set, call.TextArgument(0, "chars"));
  return Value::Of(Strip(call.subject.text(), kSide, set));
}

template <Text (*kChange)(const Text&)>
Result<Value> ChangeText(const Call& call) {
  return Value::Of(kChange(call.subject.text()));
}

// startswith and endswith: of one string, or of any in a list.
Result<Value> HasAffix(const Call& call) {
  const bool at_start = call.name == "startswith";
  const Value* affix = call.Argument(0, "");
  if (affix == nullptr) return call.Error("takes a string");
  const List affixes = affix->is(Kind::kList) ? affix->list() : List{*affix};
  for (const Value& candidate : affixes) {
    if (!candidate.is(Kind::kText)) return call.Error("takes strings");
    const std::string& bytes = call.subject.bytes();
    if (at_start ? bytes.starts_with(candidate.bytes()) : bytes.ends_with(candidate.bytes())) {
      return Value::Of(true);
    }
  }
  return Value::Of(false);
}

Result<Value> RemoveAffix(const Call& call) {
  const bool at_start = call.name == "removeprefix";
  KV_ASSIGN_OR_RETURN(const Text* affix, call.TextArgument(0, ""));
  if (affix == nullptr) return call.Error("takes a string");
  const Text& text = call.subject.text();
  if (at_start && text.bytes().starts_with(affix->bytes())) {
    return Value::Of(text.Slice(affix->size(), text.size()));
  }
  if (!at_start && text.bytes().ends_with(affix->bytes())) {
    return Value::Of(text.Slice(0, text.size() - affix->size()));
  }
  return call.subject;
}

Result<int64_t> CountArgument(const Call& call, size_t index, std::string_view name) {
  const Value* count = call.Argument(index, name);
  if (count == nullptr) return int64_t{-1};
  if (!count->is(Kind::kInt)) return call.Error("takes its count as an integer");
  return count->integer();
}

Result<Value> SplitText(const Call& call) {
  KV_ASSIGN_OR_RETURN(const Text* separator, call.TextArgument(0, "sep"));
  KV_ASSIGN_OR_RETURN(const int64_t splits, CountArgument(call, 1, "maxsplit"));
  if (separator != nullptr && separator->empty()) return call.Error("takes no empty separator");
  const Text& text = call.subject.text();
  // An upper bound of the pieces, before they are made.
  const size_t pieces =
      separator != nullptr ? CountOf(text.bytes(), separator->bytes()) + 1 : text.size() / 2 + 1;
  if (splits < 0 && pieces > kListItemsMax) return call.Error("makes too many pieces");
  return Value::Of(Split(text, separator, splits));
}

Result<Value> SplitTextLines(const Call& call) {
  if (CountOf(call.subject.bytes(), "\n") + CountOf(call.subject.bytes(), "\r") > kListItemsMax) {
    return call.Error("makes too many pieces");
  }
  return Value::Of(SplitLines(call.subject.text()));
}

Result<Value> ReplaceText(const Call& call) {
  KV_ASSIGN_OR_RETURN(const Text* from, call.TextArgument(0, "old"));
  KV_ASSIGN_OR_RETURN(const Text* to, call.TextArgument(1, "new"));
  KV_ASSIGN_OR_RETURN(const int64_t count, CountArgument(call, 2, "count"));
  if (from == nullptr || to == nullptr || from->empty()) return call.Error("takes two strings");
  const Text& text = call.subject.text();
  if (CountOf(text.bytes(), from->bytes()) * to->size() > kTextBytesMax) {
    return call.Error("makes too long a text");
  }
  return Value::Of(Replace(text, from->bytes(), *to, count));
}

// find, rfind: the index of a character, or -1.
Result<Value> Find(const Call& call) {
  KV_ASSIGN_OR_RETURN(const Text* part, call.TextArgument(0, "sub"));
  if (part == nullptr) return call.Error("takes a string");
  const std::string& bytes = call.subject.bytes();
  const size_t at = call.name == "find" ? bytes.find(part->bytes()) : bytes.rfind(part->bytes());
  if (at == std::string::npos) return Value::Of(int64_t{-1});
  const size_t characters = CharacterOffsets(call.subject.text().Slice(0, at)).size() - 1;
  return Value::Of(static_cast<int64_t>(characters));
}

Result<Value> Count(const Call& call) {
  KV_ASSIGN_OR_RETURN(const Text* part, call.TextArgument(0, "sub"));
  if (part == nullptr || part->empty()) return call.Error("takes a string that is not empty");
  return Value::Of(static_cast<int64_t>(CountOf(call.subject.bytes(), part->bytes())));
}

Result<Value> JoinItems(const Call& call) {
  const Value* items = call.Argument(0, "");
  if (items == nullptr) return call.Error("takes a list");
  Call join("join", call.line);
  join.subject = *items;
  join.arguments = {call.subject};
  return ApplyFilter(join);
}

template <CharacterClass kClass>
Result<Value> AllOfClass(const Call& call) {
  const std::string& bytes = call.subject.bytes();
  bool all = !bytes.empty();
  for (size_t at = 0; at < bytes.size(); at += CharacterAt(bytes, at).size) {
    all = all && ClassOf(CharacterAt(bytes, at).value) == kClass;
  }
  return Value::Of(all);
}

struct NamedMethod {
  std::string_view name;
  Method method;
};

constexpr NamedMethod kTextMethods[] = {
    {"strip", StripText<Side::kBoth>},
    {"lstrip", StripText<Side::kLeft>},
    {"rstrip", StripText<Side::kRight>},
    {"startswith", HasAffix},
    {"endswith", HasAffix},
    {"removeprefix", RemoveAffix},
    {"removesuffix", RemoveAffix},
    {"split", SplitText},
    {"splitlines", SplitTextLines},
    {"replace", ReplaceText},
    {"upper", ChangeText<Upper>},
    {"lower", ChangeText<Lower>},
    {"title", ChangeText<Title>},
    {"capitalize", ChangeText<Capitalize>},
    {"find", Find},
    {"rfind", Find},
    {"count", Count},
    {"join", JoinItems},
    {"isdigit", AllOfClass<CharacterClass::kNumber>},
    {"isalpha", AllOfClass<CharacterClass::kLetter>},
    {"isspace", AllOfClass<CharacterClass::kSpace>},
};

Result<Value> CallMapMethod(const Call& call) {
  const Map& map = call.subject.map();
  if (call.name == "get") {
    const Value* key = call.Argument(0, "key");
    if (key == nullptr) return call.Error("takes a key");
    const Value* found = key->is(Kind::kText) ? call.subject.Find(key->bytes()) : nullptr;
    const Value* otherwise = call.Argument(1, "default");
    if (found != nullptr) return *found;
    return otherwise != nullptr ? *otherwise : Value::None();
  }
  List items;
  for (const Entry& entry : map) {
    const Value key = Value::Of(entry.key);
    if (call.name == "keys") items.push_back(key);
    if (call.name == "values") items.push_back(entry.value);
    if (call.name == "items") items.push_back(Value::Of(List{key, entry.value}));
  }
  if (call.name != "keys" && call.name != "values" && call.name != "items") {
    return call.Error("is no method of maps that is known");
  }
  return Value::Of(std::move(items));
}

}  // namespace

Result<Value> CallMethod(const Call& call) {
  if (call.subject.is(Kind::kMap)) return CallMapMethod(call);
  KV_RETURN_IF_ERROR(call.NeedText());
  for (const NamedMethod& known : kTextMethods) {
    if (known.name == call.name) return known.method(call);
  }
  return call.Error("is no method of strings that is known");
}

}  // namespace cairn::engine::jinja
