// Parses the expressions of the template language.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/tokens/jinja_ast.h"
#include "engine/tokens/jinja_token_stream.h"

namespace cairn::engine::jinja {

using ExpressionResult = kv::Result<std::unique_ptr<Expression>>;

class ExpressionParser {
 public:
  // `tokens` must outlive this.
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  // With a conditional `a if b else c`. ParseTuple also takes `a, b` as a list.
  ExpressionResult Parse();
  ExpressionResult ParseTuple();
  // Without a conditional: what a `for` loops over, before its own `if`.
  ExpressionResult ParseOr();

 private:
  ExpressionResult ParseAnd();
  ExpressionResult ParseNot();
  ExpressionResult ParseCompare();
  ExpressionResult ParseSum();
  ExpressionResult ParseConcat();
  ExpressionResult ParseProduct();
  ExpressionResult ParsePower();
  ExpressionResult ParseUnary();
  ExpressionResult ParseSigned();
  ExpressionResult ParsePrimary();
  ExpressionResult ParseList();
  ExpressionResult ParseMap();
  ExpressionResult ParsePostfix(std::unique_ptr<Expression> left);
  ExpressionResult ParseFilters(std::unique_ptr<Expression> left);
  ExpressionResult ParseTest(std::unique_ptr<Expression> left);
  ExpressionResult ParseSubscript(std::unique_ptr<Expression> left);
  kv::Status ParseArguments(Expression& call);

  std::unique_ptr<Expression> Make(ExpressionType type, std::string text = "") const;
  // Adds a child; fails where the tree becomes too deep.
  kv::Status Adopt(Expression& parent, std::unique_ptr<Expression> child) const;
  using Part = ExpressionResult (ExpressionParser::*)();
  // part (operator part)*, grouped from the left.
  ExpressionResult ParseChain(Part part, ExpressionType type,
                              const std::vector<std::string_view>& operators);

  TokenStream& tokens_;
  uint32_t nesting_ = 0;
};

}  // namespace cairn::engine::jinja
