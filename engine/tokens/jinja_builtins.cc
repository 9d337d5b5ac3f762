// What filters, tests, methods and functions share: arguments, items, slices.
#include "engine/tokens/jinja_builtins.h"

#include <algorithm>

#include "engine/tokens/jinja_lexer.h"
#include "engine/tokens/jinja_strings.h"

namespace cairn::engine::jinja {

using kv::Code;
using kv::Result;
using kv::Status;

const Value* Call::Argument(size_t index, std::string_view parameter) const {
  const size_t positional = arguments.size() - names.size();
  if (index < positional) return &arguments[index];
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == parameter) return &arguments[positional + i];
  }
  return nullptr;
}

Result<const Text*> Call::TextArgument(size_t index, std::string_view parameter) const {
  const Value* value = Argument(index, parameter);
  if (value == nullptr || value->is(Kind::kNone)) return static_cast<const Text*>(nullptr);
  if (value->is(Kind::kText)) return &value->text();
  return Error("takes a string, not " + std::string(value->KindName()));
}

Status Call::Error(const std::string& what) const {
  return TemplateError(line, Quoted(name) + " " + what);
}

Status Call::NeedText() const {
  if (subject.is(Kind::kText)) return Status();
  return Error("works on a string, not on " + std::string(subject.KindName()));
}

bool IsFunction(std::string_view name) {
  return name == "range" || name == "namespace" || name == "raise_exception" || name == "dict";
}

namespace {

Result<Value> Range(const Call& call) {
  int64_t bounds[3] = {0, 0, 1};
  const size_t count = call.arguments.size();
  if (count == 0 || count > 3 || !call.names.empty()) return call.Error("takes 1 to 3 integers");
  for (size_t i = 0; i < count; ++i) {
    if (!call.arguments[i].is(Kind::kInt)) return call.Error("takes integers");
    bounds[count == 1 ? 1 : i] = call.arguments[i].integer();
  }
  const int64_t step = bounds[2];
  if (step == 0) return call.Error("needs a step that is not 0");
  List items;
  for (int64_t i = bounds[0]; step > 0 ? i < bounds[1] : i > bounds[1];) {
    if (items.size() == kListItemsMax) return call.Error("is too long");
    items.push_back(Value::Of(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return Value::Of(std::move(items));
}

// What Python's slice.indices() gives for `count` items.
struct Steps {
  int64_t start;
  int64_t stop;
  int64_t step;
};

bool Given(const Value& value) { return !value.is(Kind::kUndefined) && !value.is(Kind::kNone); }

Result<Steps> StepsOf(const Value (&bounds)[3], int64_t count, uint32_t line) {
  for (const Value& bound : bounds) {
    if (Given(bound) && !bound.is(Kind::kInt)) {
      return TemplateError(line, "slices are cut by integers");
    }
  }
  const int64_t step = Given(bounds[2]) ? bounds[2].integer() : 1;
  if (step == 0) return TemplateError(line, "the step of a slice is not 0");
  const int64_t low = step > 0 ? 0 : -1;
  const int64_t high = step > 0 ? count : count - 1;
  const auto bound = [&](const Value& value, int64_t otherwise) {
    if (!Given(value)) return otherwise;
    const int64_t at = value.integer() < 0 ? value.integer() + count : value.integer();
    return std::clamp(at, low, high);
  };
  return Steps{bound(bounds[0], step > 0 ? low : high), bound(bounds[1], step > 0 ? high : low),
               step};
}

}  // namespace

Result<Value> CallFunction(const Call& call) {
  if (call.name == "range") return Range(call);
  if (call.name == "raise_exception") {
    KV_ASSIGN_OR_RETURN(const Text* message, call.TextArgument(0, "message"));
    return Status(Code::kInvalid, "the chat template refuses these messages: " +
                                      (message != nullptr ? message->bytes() : std::string()));
  }
  Map entries;
  if (call.arguments.size() != call.names.size()) return call.Error("takes arguments by name only");
  for (size_t i = 0; i < call.names.size(); ++i) {
    if (call.arguments[i].is(Kind::kNamespace)) return call.Error("holds no namespace");
    entries.push_back({Text(call.names[i], Trust::kTrusted), call.arguments[i]});
  }
  if (call.name == "namespace") return Value::Namespace(std::move(entries));
  return Value::Of(std::move(entries));
}

Result<List> Iterate(const Value& value, uint32_t line) {
  if (value.is(Kind::kList)) return value.list();
  List items;
  if (value.is(Kind::kUndefined)) return items;
  if (value.is(Kind::kMap)) {
    for (const Entry& entry : value.map()) items.push_back(Value::Of(entry.key));
    return items;
  }
  if (!value.is(Kind::kText)) {
    return TemplateError(line, "cannot go through " + std::string(value.KindName()));
  }
  const std::vector<size_t> offsets = CharacterOffsets(value.text());
  if (offsets.size() > kListItemsMax) return TemplateError(line, "the string is too long to loop");
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    items.push_back(Value::Of(value.text().Slice(offsets[i], offsets[i + 1])));
  }
  return items;
}

Result<Value> GetItem(const Value& value, const Value& key, uint32_t line) {
  if (value.is(Kind::kUndefined)) return TemplateError(line, "what is indexed is undefined");
  if ((value.is(Kind::kMap) || value.is(Kind::kNamespace)) && key.is(Kind::kText)) {
    const Value* found = value.Find(key.bytes());
    return found != nullptr ? *found : Value();
  }
  if (!key.is(Kind::kInt)) return Value();
  const bool list = value.is(Kind::kList);
  if (!list && !value.is(Kind::kText)) return Value();
  const std::vector<size_t> offsets = list ? std::vector<size_t>() : CharacterOffsets(value.text());
  const auto count = static_cast<int64_t>(list ? value.list().size() : offsets.size() - 1);
  const int64_t at = key.integer() < 0 ? key.integer() + count : key.integer();
  if (at < 0 || at >= count) return Value();
  const auto i = static_cast<size_t>(at);
  if (list) return value.list()[i];
  return Value::Of(value.text().Slice(offsets[i], offsets[i + 1]));
}

Result<Value> Slice(const Value& value, const Value (&bounds)[3], uint32_t line) {
  if (value.is(Kind::kList)) {
    const List& items = value.list();
    KV_ASSIGN_OR_RETURN(const Steps steps,
                        StepsOf(bounds, static_cast<int64_t>(items.size()), line));
    List result;
    for (int64_t i = steps.start; steps.step > 0 ? i < steps.stop : i > steps.stop;) {
      result.push_back(items[static_cast<size_t>(i)]);
      if (__builtin_add_overflow(i, steps.step, &i)) break;
    }
    return Value::Of(std::move(result));
  }
  if (!value.is(Kind::kText)) {
    return TemplateError(line, "cannot slice " + std::string(value.KindName()));
  }
  const std::vector<size_t> offsets = CharacterOffsets(value.text());
  KV_ASSIGN_OR_RETURN(const Steps steps,
                      StepsOf(bounds, static_cast<int64_t>(offsets.size()) - 1, line));
  if (steps.step == 1) {
    const auto start = static_cast<size_t>(steps.start);
    const auto stop = static_cast<size_t>(std::max(steps.start, steps.stop));
    return Value::Of(value.text().Slice(offsets[start], offsets[stop]));
  }
  Text result;
  for (int64_t i = steps.start; steps.step > 0 ? i < steps.stop : i > steps.stop;) {
    const auto at = static_cast<size_t>(i);
    result.Append(value.text().Slice(offsets[at], offsets[at + 1]));
    if (__builtin_add_overflow(i, steps.step, &i)) break;
  }
  return Value::Of(std::move(result));
}

Result<bool> Contains(const Value& container, const Value& item, uint32_t line) {
  switch (container.kind()) {
    case Kind::kUndefined:
      return false;
    case Kind::kText:
      if (!item.is(Kind::kText)) return TemplateError(line, "only strings lie in strings");
      return container.bytes().find(item.bytes()) != std::string::npos;
    case Kind::kList:
      return std::any_of(container.list().begin(), container.list().end(),
                         [&item](const Value& other) { return other.Equals(item); });
    case Kind::kMap:
    case Kind::kNamespace:
      return item.is(Kind::kText) && container.Find(item.bytes()) != nullptr;
    default:
      return TemplateError(line, "nothing lies in " + std::string(container.KindName()));
  }
}

}  // namespace cairn::engine::jinja
