// The tests of the template language: `value is name(arguments)`.
#include "engine/tokens/jinja_builtins.h"
#include "engine/tokens/jinja_strings.h"

namespace cairn::engine::jinja {
namespace {

using kv::Result;
using Test = bool (*)(const Value&);

template <Kind kKind>
bool Is(const Value& value) {
  return value.is(kKind);
}
bool IsDefined(const Value& value) { return !value.is(Kind::kUndefined); }
bool IsTrue(const Value& value) { return value.is(Kind::kBool) && value.boolean(); }
bool IsFalse(const Value& value) { return value.is(Kind::kBool) && !value.boolean(); }
bool IsNumber(const Value& value) { return value.IsNumber(); }
bool IsSequence(const Value& value) {
  return value.is(Kind::kText) || value.is(Kind::kList) || value.is(Kind::kMap);
}
bool IsIterable(const Value& value) { return IsSequence(value) || value.is(Kind::kUndefined); }
bool IsCallable(const Value& value) { return value.is(Kind::kMacro) || value.is(Kind::kFunction); }
bool IsOdd(const Value& value) { return value.is(Kind::kInt) && value.integer() % 2 != 0; }
bool IsEven(const Value& value) { return value.is(Kind::kInt) && value.integer() % 2 == 0; }
bool IsLower(const Value& value) {
  const Text text = value.Print();
  return Lower(text).bytes() == text.bytes() && Upper(text).bytes() != text.bytes();
}
bool IsUpper(const Value& value) {
  const Text text = value.Print();
  return Upper(text).bytes() == text.bytes() && Lower(text).bytes() != text.bytes();
}

struct NamedTest {
  std::string_view name;
  Test test;
};

constexpr NamedTest kTests[] = {
    {"defined", IsDefined},
    {"undefined", Is<Kind::kUndefined>},
    {"none", Is<Kind::kNone>},
    {"string", Is<Kind::kText>},
    {"number", IsNumber},
    {"integer", Is<Kind::kInt>},
    {"float", Is<Kind::kFloat>},
    {"boolean", Is<Kind::kBool>},
    {"true", IsTrue},
    {"false", IsFalse},
    {"mapping", Is<Kind::kMap>},
    {"sequence", IsSequence},
    {"iterable", IsIterable},
    {"callable", IsCallable},
    {"odd", IsOdd},
    {"even", IsEven},
    {"lower", IsLower},
    {"upper", IsUpper},
};

}  // namespace

Result<bool> ApplyTest(const Call& call) {
  for (const NamedTest& known : kTests) {
    if (known.name == call.name) return known.test(call.subject);
  }
  const Value* other = call.Argument(0, "other");
  const std::string_view name = call.name;
  if (other == nullptr) return call.Error("is no test that is known, or lacks its argument");
  if (name == "equalto" || name == "eq" || name == "sameas") return call.subject.Equals(*other);
  if (name == "ne") return !call.subject.Equals(*other);
  if (name == "in") return Contains(*other, call.subject, call.line);
  if (name == "divisibleby") {
    if (!call.subject.is(Kind::kInt) || !other->is(Kind::kInt) || other->integer() == 0 ||
        other->integer() == -1) {
      return call.Error("takes positive integers");
    }
    return call.subject.integer() % other->integer() == 0;
  }
  const bool numbers = call.subject.IsNumber() && other->IsNumber();
  if (numbers && (name == "lt" || name == "lessthan")) {
    return call.subject.number() < other->number();
  }
  if (numbers && (name == "gt" || name == "greaterthan")) {
    return call.subject.number() > other->number();
  }
  if (numbers && name == "le") return call.subject.number() <= other->number();
  if (numbers && name == "ge") return call.subject.number() >= other->number();
  return call.Error("is no test that is known");
}

}  // namespace cairn::engine::jinja
