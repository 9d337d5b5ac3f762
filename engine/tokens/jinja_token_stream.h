// The words of a template, read one after another by the parsers.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "engine/tokens/jinja_lexer.h"
#include "kvstore/base/result.h"

namespace cairn::engine::jinja {

// How deep expressions and statements may lie in one another: bounds the stack.
inline constexpr uint32_t kNestingMax = 100;

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& Peek() const { return tokens_[at_]; }
  const Token& PeekNext() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  uint32_t line() const { return Peek().line; }

  // The last token is kEnd, and stays.
  Token Next() {
    if (at_ + 1 == tokens_.size()) return tokens_[at_];
    return tokens_[at_++];
  }
  bool SeesOperator(std::string_view text) const {
    return Peek().type == TokenType::kOperator && Peek().text == text;
  }
  bool SeesName(std::string_view text) const {
    return Peek().type == TokenType::kName && Peek().text == text;
  }
  bool SkipOperator(std::string_view text) {
    if (!SeesOperator(text)) return false;
    Next();
    return true;
  }
  bool SkipName(std::string_view text) {
    if (!SeesName(text)) return false;
    Next();
    return true;
  }
  kv::Status ExpectOperator(std::string_view text) {
    if (SkipOperator(text)) return kv::Status();
    return Unexpected(Quoted(text));
  }
  kv::Result<std::string> ExpectName() {
    if (Peek().type == TokenType::kName) return Next().text;
    return Unexpected("a name");
  }
  kv::Status Unexpected(const std::string& wanted) const {
    const std::string& text = Peek().text;
    const std::string found = text.empty() ? "the end of the tag" : Quoted(text);
    return TemplateError(line(), "expected " + wanted + ", found " + found);
  }

 private:
  const std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace cairn::engine::jinja
