// A parsed template: statements and the expressions inside them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/tokens/jinja_value.h"

namespace cairn::engine::jinja {

enum class ExpressionType : uint8_t {
  kConstant,  // value
  kName,      // text
  kList,      // children
  kMap,       // children: key, value, key, value...
  kMember,    // children[0] . text
  kIndex,     // children[0] [ children[1] ]
  kSlice,     // children[0] [ children[1] : children[2] : children[3] ], each of 1..3 may be null
  kCall,      // children[0] ( children[1..] ), the last names.size() of them by name
  kFilter,    // children[0] | text ( children[1..] ), likewise
  kTest,      // children[0] is text ( children[1..] ), likewise
  kUnary,     // text: "-", "+", "not"
  kBinary,    // text: + - * / // % ** ~
  kCompare,   // text: == != < <= > >= in "not in"
  kLogic,     // text: "and", "or"
  kConditional,  // children[0] if children[1] else children[2], which may be null
};

struct Expression {
  ExpressionType type = ExpressionType::kConstant;
  uint32_t line = 0;
  uint32_t depth = 1;  // Of the tree below; limited, since reading it recurses.
  std::string text;
  Value value;
  std::vector<std::unique_ptr<Expression>> children;
  std::vector<std::string> names;  // Of the arguments given by name.
};

enum class StatementType : uint8_t {
  kData,   // text
  kPrint,  // expression
  kIf,     // branches: the first whose condition is null or true
  kFor,    // names in expression if condition: body, or orelse where nothing was
  kSet,    // names = expression; or names[0] = body; or names[0].member = expression
  kMacro,  // text ( names = defaults ): body
  kBreak,
  kContinue,
  kBlock,  // body, where it stands
};

struct Statement;
using Body = std::vector<std::unique_ptr<Statement>>;

struct Branch {
  std::unique_ptr<Expression> condition;
  Body body;
};

struct Statement {
  StatementType type = StatementType::kData;
  uint32_t line = 0;
  std::string text;
  std::string member;
  std::vector<std::string> names;
  std::unique_ptr<Expression> expression;
  std::unique_ptr<Expression> condition;
  std::vector<std::unique_ptr<Expression>> defaults;  // For the last names of a macro.
  std::vector<Branch> branches;
  Body body;
  Body orelse;
};

}  // namespace cairn::engine::jinja
