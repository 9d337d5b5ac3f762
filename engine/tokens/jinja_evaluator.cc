// Runs a parsed template: the expressions.
#include "engine/tokens/jinja_evaluator.h"

#include <cmath>

namespace cairn::engine::jinja {
namespace {

using kv::Result;
using kv::Status;

Status Mismatch(const Expression& expression, const Value& left, const Value& right) {
  return TemplateError(expression.line, "'" + expression.text + "' does not go between " +
                                            std::string(left.KindName()) + " and " +
                                            std::string(right.KindName()));
}

Result<Value> RepeatText(const Expression& expression, const Text& text, int64_t count) {
  if (count > 0 && text.size() > kTextBytesMax / static_cast<uint64_t>(count)) {
    return TemplateError(expression.line, "the text becomes too long");
  }
  Text result;
  for (int64_t i = 0; i < count && !text.empty(); ++i) result.Append(text);
  return Value::Of(std::move(result));
}

Result<Value> Overflow(const Expression& expression) {
  return TemplateError(expression.line, "a number becomes too large");
}

int64_t FloorDivide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Result<Value> Integers(const Expression& expression, int64_t a, int64_t b) {
  const std::string& text = expression.text;
  int64_t result = 0;
  bool overflow = false;
  if (text == "+") overflow = __builtin_add_overflow(a, b, &result);
  if (text == "-") overflow = __builtin_sub_overflow(a, b, &result);
  if (text == "*") overflow = __builtin_mul_overflow(a, b, &result);
  if (text == "/" || text == "//" || text == "%") {
    if (b == 0) return TemplateError(expression.line, "division by zero");
    if (b == -1 && a == INT64_MIN) return Overflow(expression);
    if (text == "/") return Value::Of(static_cast<double>(a) / static_cast<double>(b));
    result = text == "//" ? FloorDivide(a, b) : a - FloorDivide(a, b) * b;
  }
  if (text == "**") {
    if (b < 0) return Value::Of(std::pow(static_cast<double>(a), static_cast<double>(b)));
    result = 1;
    if (a == 0 || a == 1) b = std::min<int64_t>(b, 1);
    if (a == -1) b %= 2;
    for (int64_t i = 0; i < b && !overflow; ++i) {
      overflow = __builtin_mul_overflow(result, a, &result);
    }
  }
  if (overflow) return Overflow(expression);
  return Value::Of(result);
}

Result<Value> Floats(const Expression& expression, double a, double b) {
  const std::string& text = expression.text;
  if (text == "+") return Value::Of(a + b);
  if (text == "-") return Value::Of(a - b);
  if (text == "*") return Value::Of(a * b);
  if (text == "**") return Value::Of(std::pow(a, b));
  if (b == 0) return TemplateError(expression.line, "division by zero");
  if (text == "/") return Value::Of(a / b);
  if (text == "//") return Value::Of(std::floor(a / b));
  return Value::Of(a - std::floor(a / b) * b);
}

}  // namespace

Evaluator::Evaluator(Map variables) : scopes_(1) {
  for (Entry& entry : variables) SetVariable(entry.key.bytes(), std::move(entry.value));
}

const Value* Evaluator::FindVariable(std::string_view name) const {
  for (size_t i = scopes_.size(); i-- > 0;) {
    if (i < base_ && i != 0) continue;
    for (const auto& [known, value] : scopes_[i]) {
      if (known == name) return &value;
    }
  }
  return nullptr;
}

void Evaluator::SetVariable(std::string_view name, Value value) {
  for (auto& [known, old] : scopes_.back()) {
    if (known == name) {
      old = std::move(value);
      return;
    }
  }
  scopes_.back().emplace_back(name, std::move(value));
}

Status Evaluator::Spend(uint64_t work, uint32_t line) {
  if (work > work_left_) return TemplateError(line, "the template goes on for too long");
  work_left_ -= work;
  return Status();
}

Status Evaluator::Admit(const Value& value, uint32_t line) {
  const bool holds_text = value.is(Kind::kText);
  const bool holds_items = value.is(Kind::kList) || value.is(Kind::kMap);
  if (!holds_text && !holds_items) return Status();
  if (value.depth() > kValueDepthMax) return TemplateError(line, "values nested too deeply");
  if (value.weight() > 4 * kTextBytesMax || (holds_text && value.text().size() > kTextBytesMax) ||
      (value.is(Kind::kList) && value.list().size() > kListItemsMax)) {
    return TemplateError(line, "a value becomes too large");
  }
  return Spend(holds_text ? value.text().size() / kBytesPerWork : value.weight() / kBytesPerWork,
               line);
}

Result<Value> Evaluator::Evaluate(const Expression& expression) {
  const Level level(nesting_);
  if (level.TooDeep()) return TemplateError(expression.line, "nested too deeply");
  KV_RETURN_IF_ERROR(Spend(1, expression.line));
  KV_ASSIGN_OR_RETURN(Value value, EvaluateUnlimited(expression));
  // Names and constants make nothing new.
  if (expression.type != ExpressionType::kName && expression.type != ExpressionType::kConstant &&
      expression.type != ExpressionType::kMember && expression.type != ExpressionType::kIndex) {
    KV_RETURN_IF_ERROR(Admit(value, expression.line));
  }
  return value;
}

Result<Value> Evaluator::EvaluateUnlimited(const Expression& expression) {
  switch (expression.type) {
    case ExpressionType::kConstant:
      return expression.value;
    case ExpressionType::kName:
      return EvaluateName(expression);
    case ExpressionType::kList: {
      KV_ASSIGN_OR_RETURN(std::vector<Value> items, EvaluateAll(expression, 0));
      for (const Value& item : items) {
        if (item.is(Kind::kNamespace)) {
          return TemplateError(expression.line, "a namespace does not lie in a list");
        }
      }
      return Value::Of(std::move(items));
    }
    case ExpressionType::kMap:
      return EvaluateMap(expression);
    case ExpressionType::kMember:
      return EvaluateMember(expression);
    case ExpressionType::kIndex: {
      KV_ASSIGN_OR_RETURN(const Value object, Evaluate(*expression.children[0]));
      KV_ASSIGN_OR_RETURN(const Value key, Evaluate(*expression.children[1]));
      if (object.is(Kind::kText)) {
        KV_RETURN_IF_ERROR(Spend(object.text().size() / kBytesPerWork, expression.line));
      }
      return GetItem(object, key, expression.line);
    }
    case ExpressionType::kSlice:
      return EvaluateSlice(expression);
    case ExpressionType::kCall:
      return EvaluateCall(expression);
    case ExpressionType::kFilter: {
      KV_ASSIGN_OR_RETURN(const Call call, MakeCall(expression));
      return ApplyFilter(call);
    }
    case ExpressionType::kTest: {
      KV_ASSIGN_OR_RETURN(const Call call, MakeCall(expression));
      KV_ASSIGN_OR_RETURN(const bool passes, ApplyTest(call));
      return Value::Of(passes);
    }
    case ExpressionType::kUnary:
      return EvaluateUnary(expression);
    case ExpressionType::kBinary:
      return EvaluateBinary(expression);
    case ExpressionType::kCompare:
      return EvaluateCompare(expression);
    case ExpressionType::kLogic:
      return EvaluateLogic(expression);
    case ExpressionType::kConditional:
      return EvaluateConditional(expression);
  }
  return Value();
}

Result<Value> Evaluator::EvaluateName(const Expression& expression) const {
  const Value* value = FindVariable(expression.text);
  if (value != nullptr) return *value;
  return IsFunction(expression.text) ? Value::Function(expression.text) : Value();
}

Result<std::vector<Value>> Evaluator::EvaluateAll(const Expression& expression, size_t first) {
  std::vector<Value> values;
  for (size_t i = first; i < expression.children.size(); ++i) {
    KV_ASSIGN_OR_RETURN(Value value, Evaluate(*expression.children[i]));
    values.push_back(std::move(value));
  }
  return values;
}

Result<Value> Evaluator::EvaluateMap(const Expression& expression) {
  KV_ASSIGN_OR_RETURN(std::vector<Value> parts, EvaluateAll(expression, 0));
  Map entries;
  for (size_t i = 0; i + 1 < parts.size(); i += 2) {
    if (!parts[i].is(Kind::kText)) {
      return TemplateError(expression.line, "the keys of a map are strings");
    }
    if (parts[i + 1].is(Kind::kNamespace)) {
      return TemplateError(expression.line, "a namespace does not lie in a map");
    }
    const auto known = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
      return entry.key.bytes() == parts[i].bytes();
    });
    if (known != entries.end()) {
      known->value = parts[i + 1];
    } else {
      entries.push_back({parts[i].text(), parts[i + 1]});
    }
  }
  return Value::Of(std::move(entries));
}

Result<Value> Evaluator::EvaluateMember(const Expression& expression) {
  const Expression& owner = *expression.children[0];
  KV_ASSIGN_OR_RETURN(const Value object, Evaluate(owner));
  if (object.is(Kind::kUndefined)) {
    const std::string name = owner.text.empty() ? "the value" : "'" + owner.text + "'";
    return TemplateError(expression.line,
                         name + " is undefined and has no '" + expression.text + "'");
  }
  if (!object.is(Kind::kMap) && !object.is(Kind::kNamespace)) return Value();
  const Value* found = object.Find(expression.text);
  return found != nullptr ? *found : Value();
}

Result<Value> Evaluator::EvaluateSlice(const Expression& expression) {
  KV_ASSIGN_OR_RETURN(const Value object, Evaluate(*expression.children[0]));
  Value bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    if (expression.children[i + 1] == nullptr) continue;
    KV_ASSIGN_OR_RETURN(bounds[i], Evaluate(*expression.children[i + 1]));
  }
  if (object.is(Kind::kText)) {
    KV_RETURN_IF_ERROR(Spend(object.text().size() / kBytesPerWork, expression.line));
  }
  return Slice(object, bounds, expression.line);
}

Result<Call> Evaluator::MakeCall(const Expression& expression) {
  Call call(expression.text, expression.line);
  KV_ASSIGN_OR_RETURN(call.subject, Evaluate(*expression.children[0]));
  KV_ASSIGN_OR_RETURN(call.arguments, EvaluateAll(expression, 1));
  call.names = expression.names;
  // Built-ins read all of their subject, whatever they make of it.
  KV_RETURN_IF_ERROR(Admit(call.subject, expression.line));
  return call;
}

Result<Value> Evaluator::EvaluateCall(const Expression& expression) {
  const Expression& callee = *expression.children[0];
  if (callee.type == ExpressionType::kMember) {
    Call call(callee.text, expression.line);
    KV_ASSIGN_OR_RETURN(call.subject, Evaluate(*callee.children[0]));
    KV_ASSIGN_OR_RETURN(call.arguments, EvaluateAll(expression, 1));
    call.names = expression.names;
    KV_RETURN_IF_ERROR(Admit(call.subject, expression.line));
    return CallMethod(call);
  }
  KV_ASSIGN_OR_RETURN(const Value function, Evaluate(callee));
  Call call(callee.text, expression.line);
  KV_ASSIGN_OR_RETURN(call.arguments, EvaluateAll(expression, 1));
  call.names = expression.names;
  if (function.is(Kind::kMacro)) return CallMacro(*function.macro(), call);
  if (!function.is(Kind::kFunction)) {
    return TemplateError(
        expression.line,
        "'" + callee.text + "' is " + std::string(function.KindName()) + " and cannot be called");
  }
  call.name = function.bytes();
  return CallFunction(call);
}

Result<Value> Evaluator::EvaluateUnary(const Expression& expression) {
  KV_ASSIGN_OR_RETURN(const Value operand, Evaluate(*expression.children[0]));
  if (expression.text == "not") return Value::Of(!operand.Truthy());
  if (!operand.IsNumber()) {
    return TemplateError(expression.line, "'" + expression.text + "' does not go before " +
                                              std::string(operand.KindName()));
  }
  if (expression.text == "+") return operand;
  if (operand.is(Kind::kFloat)) return Value::Of(-operand.number());
  if (operand.integer() == INT64_MIN) return Overflow(expression);
  return Value::Of(-operand.integer());
}

Result<Value> Evaluator::EvaluateBinary(const Expression& expression) {
  KV_ASSIGN_OR_RETURN(const Value left, Evaluate(*expression.children[0]));
  KV_ASSIGN_OR_RETURN(const Value right, Evaluate(*expression.children[1]));
  const std::string& text = expression.text;
  if (text == "~") {
    Text joined = left.Print();
    joined.Append(right.Print());
    return Value::Of(std::move(joined));
  }
  if (text == "+" && left.is(Kind::kText) && right.is(Kind::kText)) {
    Text joined = left.text();
    joined.Append(right.text());
    return Value::Of(std::move(joined));
  }
  if (text == "+" && left.is(Kind::kList) && right.is(Kind::kList)) {
    List joined = left.list();
    joined.insert(joined.end(), right.list().begin(), right.list().end());
    return Value::Of(std::move(joined));
  }
  if (text == "*" && left.is(Kind::kText) && right.is(Kind::kInt)) {
    return RepeatText(expression, left.text(), right.integer());
  }
  if (!left.IsNumber() || !right.IsNumber()) return Mismatch(expression, left, right);
  if (left.is(Kind::kFloat) || right.is(Kind::kFloat)) {
    return Floats(expression, left.number(), right.number());
  }
  return Integers(expression, left.integer(), right.integer());
}

Result<Value> Evaluator::EvaluateCompare(const Expression& expression) {
  KV_ASSIGN_OR_RETURN(const Value left, Evaluate(*expression.children[0]));
  KV_ASSIGN_OR_RETURN(const Value right, Evaluate(*expression.children[1]));
  const std::string& text = expression.text;
  KV_RETURN_IF_ERROR(
      Spend(std::min(left.weight(), right.weight()) / kBytesPerWork, expression.line));
  if (text == "==") return Value::Of(left.Equals(right));
  if (text == "!=") return Value::Of(!left.Equals(right));
  if (text == "in" || text == "not in") {
    KV_RETURN_IF_ERROR(Spend(right.weight() / kBytesPerWork, expression.line));
    KV_ASSIGN_OR_RETURN(const bool inside, Contains(right, left, expression.line));
    return Value::Of(inside == (text == "in"));
  }
  int order = 0;
  if (left.IsNumber() && right.IsNumber()) {
    const double a = left.number();
    const double b = right.number();
    order = a < b ? -1 : a > b ? 1 : 0;
  } else if (left.is(Kind::kText) && right.is(Kind::kText)) {
    order = left.bytes().compare(right.bytes());
  } else {
    return Mismatch(expression, left, right);
  }
  if (text == "<") return Value::Of(order < 0);
  if (text == "<=") return Value::Of(order <= 0);
  if (text == ">") return Value::Of(order > 0);
  return Value::Of(order >= 0);
}

Result<Value> Evaluator::EvaluateLogic(const Expression& expression) {
  KV_ASSIGN_OR_RETURN(Value left, Evaluate(*expression.children[0]));
  if (left.Truthy() == (expression.text == "or")) return left;
  return Evaluate(*expression.children[1]);
}

Result<Value> Evaluator::EvaluateConditional(const Expression& expression) {
  KV_ASSIGN_OR_RETURN(const Value condition, Evaluate(*expression.children[1]));
  if (condition.Truthy()) return Evaluate(*expression.children[0]);
  if (expression.children[2] == nullptr) return Value();
  return Evaluate(*expression.children[2]);
}

}  // namespace cairn::engine::jinja
