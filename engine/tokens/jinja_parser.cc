// Turns the source of a template into a tree: the statements.
#include "engine/tokens/jinja_parser.h"

#include <algorithm>

#include "engine/tokens/jinja_expression_parser.h"
#include "engine/tokens/jinja_lexer.h"
#include "engine/tokens/jinja_token_stream.h"

namespace cairn::engine::jinja {
namespace {

using kv::Result;
using kv::Status;
using Node = std::unique_ptr<Statement>;
using NodeResult = Result<Node>;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)), expressions_(tokens_) {}

  Result<Body> ParseTemplate() {
    KV_ASSIGN_OR_RETURN(Body body, ParseBody({}));
    if (tokens_.Peek().type != TokenType::kEnd) return tokens_.Unexpected("text");
    return body;
  }

 private:
  Node Make(StatementType type) const {
    auto node = std::make_unique<Statement>();
    node->type = type;
    node->line = tokens_.line();
    return node;
  }

  // Statements up to a tag that begins with one of `ends`, which is left at its name.
  Result<Body> ParseBody(std::vector<std::string_view> ends) {
    if (++nesting_ > kNestingMax) return TemplateError(tokens_.line(), "nested too deeply");
    const uint32_t line = tokens_.line();
    Body body;
    while (true) {
      const Token& token = tokens_.Peek();
      if (token.type == TokenType::kEnd) {
        if (!ends.empty()) {
          return TemplateError(line, "the block has no " + std::string(ends.back()));
        }
        break;
      }
      if (token.type == TokenType::kData) {
        Node data = Make(StatementType::kData);
        data->text = tokens_.Next().text;
        body.push_back(std::move(data));
      } else if (token.type == TokenType::kPrintBegin) {
        KV_ASSIGN_OR_RETURN(Node print, ParsePrint());
        body.push_back(std::move(print));
      } else {
        tokens_.Next();
        if (std::find(ends.begin(), ends.end(), tokens_.Peek().text) != ends.end()) break;
        KV_ASSIGN_OR_RETURN(Node statement, ParseStatement());
        body.push_back(std::move(statement));
      }
    }
    --nesting_;
    return body;
  }

  Status EndTag() {
    if (tokens_.Peek().type != TokenType::kStatementEnd) return tokens_.Unexpected("%}");
    tokens_.Next();
    return Status();
  }

  NodeResult ParsePrint() {
    Node print = Make(StatementType::kPrint);
    tokens_.Next();
    KV_ASSIGN_OR_RETURN(print->expression, expressions_.ParseTuple());
    if (tokens_.Peek().type != TokenType::kPrintEnd) return tokens_.Unexpected("}}");
    tokens_.Next();
    return print;
  }

  NodeResult ParseStatement() {
    const uint32_t line = tokens_.line();
    KV_ASSIGN_OR_RETURN(const std::string name, tokens_.ExpectName());
    if (name == "if") return ParseIf();
    if (name == "for") return ParseFor();
    if (name == "set") return ParseSet();
    if (name == "macro") return ParseMacro();
    if (name == "break" || name == "continue") {
      if (loops_ == 0) return TemplateError(line, name + " stands outside a loop");
      Node node = Make(name == "break" ? StatementType::kBreak : StatementType::kContinue);
      KV_RETURN_IF_ERROR(EndTag());
      return node;
    }
    if (name == "generation") {  // Marks what a model is trained on: means nothing here.
      Node node = Make(StatementType::kBlock);
      KV_RETURN_IF_ERROR(EndTag());
      KV_ASSIGN_OR_RETURN(node->body, ParseBody({"endgeneration"}));
      tokens_.Next();
      KV_RETURN_IF_ERROR(EndTag());
      return node;
    }
    return TemplateError(line, Quoted(name) + " is no statement that is known");
  }

  NodeResult ParseIf() {
    Node node = Make(StatementType::kIf);
    std::string word = "if";
    while (word != "endif") {
      Branch branch;
      if (word != "else") {
        KV_ASSIGN_OR_RETURN(branch.condition, expressions_.ParseTuple());
      }
      KV_RETURN_IF_ERROR(EndTag());
      const bool last = word == "else";
      KV_ASSIGN_OR_RETURN(branch.body,
                          last ? ParseBody({"endif"}) : ParseBody({"elif", "else", "endif"}));
      node->branches.push_back(std::move(branch));
      word = tokens_.Next().text;
    }
    KV_RETURN_IF_ERROR(EndTag());
    return node;
  }

  Result<std::vector<std::string>> ParseNames() {
    std::vector<std::string> names;
    const bool open = tokens_.SkipOperator("(");
    do {
      KV_ASSIGN_OR_RETURN(std::string name, tokens_.ExpectName());
      names.push_back(std::move(name));
    } while (tokens_.SkipOperator(","));
    if (open) KV_RETURN_IF_ERROR(tokens_.ExpectOperator(")"));
    return names;
  }

  NodeResult ParseFor() {
    Node node = Make(StatementType::kFor);
    KV_ASSIGN_OR_RETURN(node->names, ParseNames());
    if (!tokens_.SkipName("in")) return tokens_.Unexpected("'in'");
    KV_ASSIGN_OR_RETURN(node->expression, expressions_.ParseOr());
    if (tokens_.SkipName("if")) {
      KV_ASSIGN_OR_RETURN(node->condition, expressions_.Parse());
    }
    if (tokens_.SeesName("recursive")) {
      return TemplateError(node->line, "recursive loops are not known");
    }
    KV_RETURN_IF_ERROR(EndTag());
    ++loops_;
    KV_ASSIGN_OR_RETURN(node->body, ParseBody({"else", "endfor"}));
    --loops_;
    if (tokens_.Next().text == "else") {
      KV_RETURN_IF_ERROR(EndTag());
      KV_ASSIGN_OR_RETURN(node->orelse, ParseBody({"endfor"}));
      tokens_.Next();
    }
    KV_RETURN_IF_ERROR(EndTag());
    return node;
  }

  NodeResult ParseSet() {
    Node node = Make(StatementType::kSet);
    KV_ASSIGN_OR_RETURN(node->names, ParseNames());
    if (tokens_.SkipOperator(".")) {
      KV_ASSIGN_OR_RETURN(node->member, tokens_.ExpectName());
    }
    if (tokens_.SkipOperator("=")) {
      KV_ASSIGN_OR_RETURN(node->expression, expressions_.ParseTuple());
      KV_RETURN_IF_ERROR(EndTag());
      return node;
    }
    if (node->names.size() != 1 || !node->member.empty()) return tokens_.Unexpected("'='");
    KV_RETURN_IF_ERROR(EndTag());
    KV_ASSIGN_OR_RETURN(node->body, ParseBody({"endset"}));
    tokens_.Next();
    KV_RETURN_IF_ERROR(EndTag());
    return node;
  }

  NodeResult ParseMacro() {
    Node node = Make(StatementType::kMacro);
    KV_ASSIGN_OR_RETURN(node->text, tokens_.ExpectName());
    KV_RETURN_IF_ERROR(tokens_.ExpectOperator("("));
    while (!tokens_.SkipOperator(")")) {
      if (!node->names.empty()) KV_RETURN_IF_ERROR(tokens_.ExpectOperator(","));
      KV_ASSIGN_OR_RETURN(std::string name, tokens_.ExpectName());
      node->names.push_back(std::move(name));
      if (tokens_.SkipOperator("=")) {
        KV_ASSIGN_OR_RETURN(auto value, expressions_.Parse());
        node->defaults.push_back(std::move(value));
      } else if (!node->defaults.empty()) {
        return TemplateError(node->line, "a parameter without a default follows one with one");
      }
    }
    KV_RETURN_IF_ERROR(EndTag());
    const uint32_t loops = std::exchange(loops_, 0);
    KV_ASSIGN_OR_RETURN(node->body, ParseBody({"endmacro"}));
    loops_ = loops;
    tokens_.Next();
    KV_RETURN_IF_ERROR(EndTag());
    return node;
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  uint32_t nesting_ = 0;
  uint32_t loops_ = 0;  // Open around this place, inside the innermost macro.
};

}  // namespace

Result<Body> Parse(std::string_view source) {
  KV_ASSIGN_OR_RETURN(std::vector<Token> tokens, Lex(source));
  return Parser(std::move(tokens)).ParseTemplate();
}

}  // namespace cairn::engine::jinja
