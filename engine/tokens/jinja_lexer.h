// Cuts a template into literal text and the words of its tags.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kvstore/base/result.h"

namespace cairn::engine::jinja {

enum class TokenType : uint8_t {
  kData,            // Text between tags.
  kStatementBegin,  // {%
  kStatementEnd,    // %}
  kPrintBegin,      // {{
  kPrintEnd,        // }}
  kName,
  kInteger,
  kFloat,
  kString,    // Escapes are resolved.
  kOperator,  // + - * / // % ** ~ == != < > <= >= = . : , | ( ) [ ] { }
  kEnd,
};

struct Token {
  TokenType type = TokenType::kEnd;
  std::string text;
  uint32_t line = 0;
};

// With the settings that chat templates are written for: trim_blocks, lstrip_blocks, and one
// newline at the end of the template dropped. Ends with kEnd. kInvalid names the line.
kv::Result<std::vector<Token>> Lex(std::string_view source);

// In single quotes, cut short where it is long: for messages.
std::string Quoted(std::string_view text);

// kInvalid: "chat template, line 7: ...".
kv::Status TemplateError(uint32_t line, const std::string& what);

}  // namespace cairn::engine::jinja
