// The state of a running template: its variables, and what it may still spend.
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/tokens/jinja_ast.h"
#include "engine/tokens/jinja_builtins.h"
#include "engine/tokens/jinja_lexer.h"
#include "engine/tokens/jinja_value.h"
#include "kvstore/base/result.h"

namespace cairn::engine::jinja {

enum class Flow { kNext, kBreak, kContinue };

// Statements, expressions, and bytes moved by the 32: at most a second or so.
inline constexpr uint64_t kWorkMax = 8'000'000;
inline constexpr uint64_t kBytesPerWork = 32;
inline constexpr uint32_t kValueDepthMax = 50;
// Levels of evaluation inside one another, macros included: bounds the stack.
inline constexpr uint32_t kEvaluationDepthMax = 300;

class Evaluator {
 public:
  explicit Evaluator(Map variables);

  // jinja_interpreter.cc
  kv::Result<Flow> Execute(const Body& body, Text& output);
  // jinja_evaluator.cc
  kv::Result<Value> Evaluate(const Expression& expression);

 private:
  class Level {
   public:
    explicit Level(uint32_t& count) : count_(++count) {}
    ~Level() { --count_; }
    bool TooDeep() const { return count_ > kEvaluationDepthMax; }

   private:
    uint32_t& count_;
  };
  // Variables set while it lives are gone after it.
  class ScopeGuard {
   public:
    explicit ScopeGuard(Evaluator& evaluator) : evaluator_(evaluator) {
      evaluator_.scopes_.emplace_back();
    }
    ~ScopeGuard() { evaluator_.scopes_.pop_back(); }

   private:
    Evaluator& evaluator_;
  };
  // Names are of the template or of this program, and outlive the run.
  using Scope = std::vector<std::pair<std::string, Value>>;

  kv::Result<Flow> ExecuteOne(const Statement& statement, Text& output);
  kv::Result<Flow> ExecuteIf(const Statement& statement, Text& output);
  kv::Result<Flow> ExecuteFor(const Statement& statement, Text& output);
  kv::Status ExecuteSet(const Statement& statement);
  kv::Status Unpack(const Statement& statement, const Value& value);
  kv::Result<List> LoopItems(const Statement& statement);
  kv::Result<Value> CallMacro(const Statement& macro, const Call& call);

  kv::Result<Value> EvaluateUnlimited(const Expression& expression);
  kv::Result<Value> EvaluateName(const Expression& expression) const;
  kv::Result<Value> EvaluateMap(const Expression& expression);
  kv::Result<Value> EvaluateMember(const Expression& expression);
  kv::Result<Value> EvaluateSlice(const Expression& expression);
  kv::Result<Value> EvaluateCall(const Expression& expression);
  kv::Result<Value> EvaluateUnary(const Expression& expression);
  kv::Result<Value> EvaluateBinary(const Expression& expression);
  kv::Result<Value> EvaluateCompare(const Expression& expression);
  kv::Result<Value> EvaluateLogic(const Expression& expression);
  kv::Result<Value> EvaluateConditional(const Expression& expression);
  // The children from `first` on, as arguments.
  kv::Result<std::vector<Value>> EvaluateAll(const Expression& expression, size_t first);
  kv::Result<Call> MakeCall(const Expression& expression);

  const Value* FindVariable(std::string_view name) const;
  void SetVariable(std::string_view name, Value value);
  kv::Status Spend(uint64_t work, uint32_t line);
  // Charges for a value that was made, and refuses what is too large or too deep.
  kv::Status Admit(const Value& value, uint32_t line);

  std::vector<Scope> scopes_;  // [0] is the template's own; the innermost is last.
  size_t base_ = 0;            // Scopes from here on are seen, and [0].
  uint64_t work_left_ = kWorkMax;
  uint32_t nesting_ = 0;
};

}  // namespace cairn::engine::jinja
