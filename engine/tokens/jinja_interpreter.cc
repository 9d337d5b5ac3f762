// Runs a parsed template: the statements.
#include "engine/tokens/jinja_interpreter.h"

#include "engine/tokens/jinja_evaluator.h"

namespace cairn::engine::jinja {

using kv::Result;
using kv::Status;

Result<Text> Run(const Body& body, Map variables) {
  Evaluator evaluator(std::move(variables));
  Text output;
  KV_RETURN_IF_ERROR(evaluator.Execute(body, output).status());
  return output;
}

Result<Flow> Evaluator::Execute(const Body& body, Text& output) {
  const Level level(nesting_);
  if (level.TooDeep()) return TemplateError(0, "nested too deeply");
  for (const auto& statement : body) {
    KV_ASSIGN_OR_RETURN(const Flow flow, ExecuteOne(*statement, output));
    if (output.size() > kTextBytesMax) {
      return TemplateError(statement->line, "the text becomes too long");
    }
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Result<Flow> Evaluator::ExecuteOne(const Statement& statement, Text& output) {
  KV_RETURN_IF_ERROR(Spend(1, statement.line));
  switch (statement.type) {
    case StatementType::kData:
      output.Append(statement.text, Trust::kTrusted);
      return Flow::kNext;
    case StatementType::kPrint: {
      KV_ASSIGN_OR_RETURN(const Value value, Evaluate(*statement.expression));
      output.Append(value.Print());
      return Flow::kNext;
    }
    case StatementType::kIf:
      return ExecuteIf(statement, output);
    case StatementType::kFor:
      return ExecuteFor(statement, output);
    case StatementType::kSet:
      KV_RETURN_IF_ERROR(ExecuteSet(statement));
      return Flow::kNext;
    case StatementType::kMacro:
      SetVariable(statement.text, Value::Macro(&statement));
      return Flow::kNext;
    case StatementType::kBreak:
      return Flow::kBreak;
    case StatementType::kContinue:
      return Flow::kContinue;
    case StatementType::kBlock:
      return Execute(statement.body, output);
  }
  return Flow::kNext;
}

Result<Flow> Evaluator::ExecuteIf(const Statement& statement, Text& output) {
  for (const Branch& branch : statement.branches) {
    bool taken = branch.condition == nullptr;
    if (!taken) {
      KV_ASSIGN_OR_RETURN(const Value condition, Evaluate(*branch.condition));
      taken = condition.Truthy();
    }
    if (taken) return Execute(branch.body, output);
  }
  return Flow::kNext;
}

// Gives the names of a loop or a set their values: one each, or the items of a list.
Status Evaluator::Unpack(const Statement& statement, const Value& value) {
  if (statement.names.size() == 1) {
    SetVariable(statement.names[0], value);
    return Status();
  }
  if (!value.is(Kind::kList) || value.list().size() != statement.names.size()) {
    return TemplateError(statement.line, "there are " + std::to_string(statement.names.size()) +
                                             " names, but not as many values");
  }
  for (size_t i = 0; i < statement.names.size(); ++i) {
    SetVariable(statement.names[i], value.list()[i]);
  }
  return Status();
}

Result<List> Evaluator::LoopItems(const Statement& statement) {
  KV_ASSIGN_OR_RETURN(const Value value, Evaluate(*statement.expression));
  KV_ASSIGN_OR_RETURN(List items, Iterate(value, statement.line));
  KV_RETURN_IF_ERROR(Spend(items.size(), statement.line));
  if (statement.condition == nullptr) return items;
  List kept;
  for (const Value& item : items) {
    const ScopeGuard scope(*this);
    KV_RETURN_IF_ERROR(Unpack(statement, item));
    KV_ASSIGN_OR_RETURN(const Value condition, Evaluate(*statement.condition));
    if (condition.Truthy()) kept.push_back(item);
  }
  return kept;
}

namespace {

Value LoopVariable(const List& items, size_t index) {
  const auto count = static_cast<int64_t>(items.size());
  const auto i = static_cast<int64_t>(index);
  const auto entry = [](std::string_view name, Value value) {
    return Entry{Text(name, Trust::kTrusted), std::move(value)};
  };
  return Value::Of(
      Map{entry("index", Value::Of(i + 1)), entry("index0", Value::Of(i)),
          entry("revindex", Value::Of(count - i)), entry("revindex0", Value::Of(count - i - 1)),
          entry("first", Value::Of(i == 0)), entry("last", Value::Of(i + 1 == count)),
          entry("length", Value::Of(count)), entry("previtem", i == 0 ? Value() : items[index - 1]),
          entry("nextitem", i + 1 == count ? Value() : items[index + 1])});
}

}  // namespace

Result<Flow> Evaluator::ExecuteFor(const Statement& statement, Text& output) {
  KV_ASSIGN_OR_RETURN(const List items, LoopItems(statement));
  if (items.empty()) return Execute(statement.orelse, output);
  for (size_t i = 0; i < items.size(); ++i) {
    const ScopeGuard scope(*this);
    KV_RETURN_IF_ERROR(Spend(50, statement.line));
    SetVariable("loop", LoopVariable(items, i));
    KV_RETURN_IF_ERROR(Unpack(statement, items[i]));
    KV_ASSIGN_OR_RETURN(const Flow flow, Execute(statement.body, output));
    if (flow == Flow::kBreak) break;
  }
  return Flow::kNext;
}

Status Evaluator::ExecuteSet(const Statement& statement) {
  Value value;
  if (statement.expression != nullptr) {
    KV_ASSIGN_OR_RETURN(value, Evaluate(*statement.expression));
  } else {
    const ScopeGuard scope(*this);
    Text text;
    KV_RETURN_IF_ERROR(Execute(statement.body, text).status());
    value = Value::Of(std::move(text));
  }
  if (statement.member.empty()) return Unpack(statement, value);
  const Value* target = FindVariable(statement.names[0]);
  if (target == nullptr || !target->is(Kind::kNamespace)) {
    return TemplateError(statement.line, "'" + statement.names[0] + "' is no namespace");
  }
  if (value.is(Kind::kNamespace)) {
    return TemplateError(statement.line, "a namespace does not lie in another");
  }
  for (Entry& entry : target->namespace_map()) {
    if (entry.key.bytes() == statement.member) {
      entry.value = std::move(value);
      return Status();
    }
  }
  target->namespace_map().push_back({Text(statement.member, Trust::kTrusted), std::move(value)});
  return Status();
}

Result<Value> Evaluator::CallMacro(const Statement& macro, const Call& call) {
  const Level level(nesting_);
  if (level.TooDeep()) return TemplateError(call.line, "nested too deeply");
  const size_t positional = call.arguments.size() - call.names.size();
  if (positional > macro.names.size()) {
    return TemplateError(call.line, "macro '" + macro.text + "' takes fewer arguments");
  }
  for (const std::string& name : call.names) {
    if (std::find(macro.names.begin(), macro.names.end(), name) == macro.names.end()) {
      return TemplateError(call.line, "macro '" + macro.text + "' takes no '" + name + "'");
    }
  }
  // A macro sees its arguments and the template's own variables, not the caller's.
  const size_t outer_base = std::exchange(base_, scopes_.size());
  Result<Value> result = [&]() -> Result<Value> {
    const ScopeGuard scope(*this);
    const size_t without_default = macro.names.size() - macro.defaults.size();
    for (size_t i = 0; i < macro.names.size(); ++i) {
      const Value* given = call.Argument(i, macro.names[i]);
      Value value = given != nullptr ? *given : Value();
      if (given == nullptr && i >= without_default) {
        KV_ASSIGN_OR_RETURN(value, Evaluate(*macro.defaults[i - without_default]));
      }
      SetVariable(macro.names[i], std::move(value));
    }
    Text output;
    KV_RETURN_IF_ERROR(Execute(macro.body, output).status());
    return Value::Of(std::move(output));
  }();
  base_ = outer_base;
  return result;
}

}  // namespace cairn::engine::jinja
