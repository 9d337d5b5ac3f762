// Parses the expressions of the template language.
#include "engine/tokens/jinja_expression_parser.h"

#include <algorithm>
#include <charconv>

namespace cairn::engine::jinja {
namespace {

using kv::Result;
using kv::Status;
using Node = std::unique_ptr<Expression>;

// Counts the levels that are open while it lives.
class Level {
 public:
  explicit Level(uint32_t& count) : count_(++count) {}
  ~Level() { --count_; }
  bool TooDeep() const { return count_ > kNestingMax; }

 private:
  uint32_t& count_;
};

Status TooDeep(uint32_t line) { return TemplateError(line, "nested too deeply"); }

}  // namespace

Node ExpressionParser::Make(ExpressionType type, std::string text) const {
  auto node = std::make_unique<Expression>();
  node->type = type;
  node->line = tokens_.line();
  node->text = std::move(text);
  return node;
}

Status ExpressionParser::Adopt(Expression& parent, Node child) const {
  if (child != nullptr) {
    parent.depth = std::max(parent.depth, child->depth + 1);
    if (parent.depth > kNestingMax) return TooDeep(parent.line);
  }
  parent.children.push_back(std::move(child));
  return Status();
}

ExpressionResult ExpressionParser::ParseTuple() {
  KV_ASSIGN_OR_RETURN(Node first, Parse());
  if (!tokens_.SeesOperator(",")) return first;
  Node list = Make(ExpressionType::kList);
  KV_RETURN_IF_ERROR(Adopt(*list, std::move(first)));
  while (tokens_.SkipOperator(",")) {
    const TokenType next = tokens_.Peek().type;
    if (next == TokenType::kStatementEnd || next == TokenType::kPrintEnd ||
        tokens_.SeesOperator(")")) {
      break;
    }
    KV_ASSIGN_OR_RETURN(Node item, Parse());
    KV_RETURN_IF_ERROR(Adopt(*list, std::move(item)));
  }
  return list;
}

ExpressionResult ExpressionParser::Parse() {
  const Level level(nesting_);
  if (level.TooDeep()) return TooDeep(tokens_.line());
  KV_ASSIGN_OR_RETURN(Node node, ParseOr());
  while (tokens_.SkipName("if")) {
    Node conditional = Make(ExpressionType::kConditional);
    KV_RETURN_IF_ERROR(Adopt(*conditional, std::move(node)));
    KV_ASSIGN_OR_RETURN(Node condition, ParseOr());
    KV_RETURN_IF_ERROR(Adopt(*conditional, std::move(condition)));
    Node otherwise;
    if (tokens_.SkipName("else")) {
      KV_ASSIGN_OR_RETURN(otherwise, Parse());
    }
    KV_RETURN_IF_ERROR(Adopt(*conditional, std::move(otherwise)));
    node = std::move(conditional);
  }
  return node;
}

ExpressionResult ExpressionParser::ParseChain(Part part, ExpressionType type,
                                              const std::vector<std::string_view>& operators) {
  KV_ASSIGN_OR_RETURN(Node left, (this->*part)());
  while (true) {
    const TokenType next = tokens_.Peek().type;
    const bool word = next == TokenType::kName || next == TokenType::kOperator;
    if (!word ||
        std::find(operators.begin(), operators.end(), tokens_.Peek().text) == operators.end()) {
      return left;
    }
    Node node = Make(type, tokens_.Next().text);
    KV_RETURN_IF_ERROR(Adopt(*node, std::move(left)));
    KV_ASSIGN_OR_RETURN(Node right, (this->*part)());
    KV_RETURN_IF_ERROR(Adopt(*node, std::move(right)));
    left = std::move(node);
  }
}

ExpressionResult ExpressionParser::ParseOr() {
  return ParseChain(&ExpressionParser::ParseAnd, ExpressionType::kLogic, {"or"});
}

ExpressionResult ExpressionParser::ParseAnd() {
  return ParseChain(&ExpressionParser::ParseNot, ExpressionType::kLogic, {"and"});
}

ExpressionResult ExpressionParser::ParseNot() {
  if (!tokens_.SeesName("not")) return ParseCompare();
  const Level level(nesting_);
  if (level.TooDeep()) return TooDeep(tokens_.line());
  Node node = Make(ExpressionType::kUnary, tokens_.Next().text);
  KV_ASSIGN_OR_RETURN(Node operand, ParseNot());
  KV_RETURN_IF_ERROR(Adopt(*node, std::move(operand)));
  return node;
}

ExpressionResult ExpressionParser::ParseCompare() {
  static constexpr std::string_view kOperators[] = {"==", "!=", "<", "<=", ">", ">="};
  KV_ASSIGN_OR_RETURN(Node left, ParseSum());
  Node chain;
  while (true) {
    std::string text;
    if (tokens_.Peek().type == TokenType::kOperator &&
        std::find(std::begin(kOperators), std::end(kOperators), tokens_.Peek().text) !=
            std::end(kOperators)) {
      text = tokens_.Next().text;
    } else if (tokens_.SkipName("in")) {
      text = "in";
    } else if (tokens_.SeesName("not") && tokens_.PeekNext().text == "in") {
      tokens_.Next();
      tokens_.Next();
      text = "not in";
    } else {
      return chain != nullptr ? std::move(chain) : std::move(left);
    }
    if (chain != nullptr) return TemplateError(tokens_.line(), "chained comparisons are not known");
    chain = Make(ExpressionType::kCompare, std::move(text));
    KV_RETURN_IF_ERROR(Adopt(*chain, std::move(left)));
    KV_ASSIGN_OR_RETURN(Node right, ParseSum());
    KV_RETURN_IF_ERROR(Adopt(*chain, std::move(right)));
  }
}

ExpressionResult ExpressionParser::ParseSum() {
  return ParseChain(&ExpressionParser::ParseConcat, ExpressionType::kBinary, {"+", "-"});
}

ExpressionResult ExpressionParser::ParseConcat() {
  return ParseChain(&ExpressionParser::ParseProduct, ExpressionType::kBinary, {"~"});
}

ExpressionResult ExpressionParser::ParseProduct() {
  return ParseChain(&ExpressionParser::ParsePower, ExpressionType::kBinary, {"*", "/", "//", "%"});
}

ExpressionResult ExpressionParser::ParsePower() {
  return ParseChain(&ExpressionParser::ParseUnary, ExpressionType::kBinary, {"**"});
}

ExpressionResult ExpressionParser::ParseUnary() {
  KV_ASSIGN_OR_RETURN(Node node, ParseSigned());
  return ParseFilters(std::move(node));
}

// Filters take the sign along: -5|abs is 5.
ExpressionResult ExpressionParser::ParseSigned() {
  const Level level(nesting_);
  if (level.TooDeep()) return TooDeep(tokens_.line());
  if (tokens_.SeesOperator("-") || tokens_.SeesOperator("+")) {
    Node node = Make(ExpressionType::kUnary, tokens_.Next().text);
    KV_ASSIGN_OR_RETURN(Node operand, ParseSigned());
    KV_RETURN_IF_ERROR(Adopt(*node, std::move(operand)));
    return node;
  }
  KV_ASSIGN_OR_RETURN(Node primary, ParsePrimary());
  return ParsePostfix(std::move(primary));
}

ExpressionResult ExpressionParser::ParsePrimary() {
  const Token token = tokens_.Peek();
  Node node = Make(ExpressionType::kConstant);
  if (token.type == TokenType::kString) {
    std::string text;
    while (tokens_.Peek().type == TokenType::kString) text += tokens_.Next().text;
    node->value = Value::Trusted(text);
    return node;
  }
  if (token.type == TokenType::kInteger || token.type == TokenType::kFloat) {
    const std::string digits = tokens_.Next().text;
    int64_t integer = 0;
    double real = 0;
    const char* end = digits.data() + digits.size();
    const bool whole = token.type == TokenType::kInteger;
    const auto read = whole ? std::from_chars(digits.data(), end, integer)
                            : std::from_chars(digits.data(), end, real);
    if (read.ec != std::errc() || read.ptr != end) {
      return TemplateError(node->line, "the number '" + digits.substr(0, 40) + "' is too large");
    }
    node->value = whole ? Value::Of(integer) : Value::Of(real);
    return node;
  }
  if (token.type == TokenType::kName) {
    const std::string name = tokens_.Next().text;
    if (name == "true" || name == "True") {
      node->value = Value::Of(true);
    } else if (name == "false" || name == "False") {
      node->value = Value::Of(false);
    } else if (name == "none" || name == "None") {
      node->value = Value::None();
    } else {
      node->type = ExpressionType::kName;
      node->text = name;
    }
    return node;
  }
  if (tokens_.SkipOperator("(")) {
    if (tokens_.SkipOperator(")")) return Make(ExpressionType::kList);
    KV_ASSIGN_OR_RETURN(Node inside, ParseTuple());
    KV_RETURN_IF_ERROR(tokens_.ExpectOperator(")"));
    return inside;
  }
  if (tokens_.SeesOperator("[")) return ParseList();
  if (tokens_.SeesOperator("{")) return ParseMap();
  return tokens_.Unexpected("an expression");
}

ExpressionResult ExpressionParser::ParseList() {
  Node list = Make(ExpressionType::kList);
  tokens_.Next();
  while (!tokens_.SkipOperator("]")) {
    if (!list->children.empty()) {
      KV_RETURN_IF_ERROR(tokens_.ExpectOperator(","));
      if (tokens_.SkipOperator("]")) break;
    }
    KV_ASSIGN_OR_RETURN(Node item, Parse());
    KV_RETURN_IF_ERROR(Adopt(*list, std::move(item)));
  }
  return list;
}

ExpressionResult ExpressionParser::ParseMap() {
  Node map = Make(ExpressionType::kMap);
  tokens_.Next();
  while (!tokens_.SkipOperator("}")) {
    if (!map->children.empty()) {
      KV_RETURN_IF_ERROR(tokens_.ExpectOperator(","));
      if (tokens_.SkipOperator("}")) break;
    }
    KV_ASSIGN_OR_RETURN(Node key, Parse());
    KV_RETURN_IF_ERROR(Adopt(*map, std::move(key)));
    KV_RETURN_IF_ERROR(tokens_.ExpectOperator(":"));
    KV_ASSIGN_OR_RETURN(Node value, Parse());
    KV_RETURN_IF_ERROR(Adopt(*map, std::move(value)));
  }
  return map;
}

ExpressionResult ExpressionParser::ParsePostfix(Node left) {
  while (true) {
    if (tokens_.SkipOperator(".")) {
      const bool index = tokens_.Peek().type == TokenType::kInteger;
      Node member = Make(index ? ExpressionType::kIndex : ExpressionType::kMember);
      KV_RETURN_IF_ERROR(Adopt(*member, std::move(left)));
      if (index) {
        KV_ASSIGN_OR_RETURN(Node number, ParsePrimary());
        KV_RETURN_IF_ERROR(Adopt(*member, std::move(number)));
      } else {
        KV_ASSIGN_OR_RETURN(member->text, tokens_.ExpectName());
      }
      left = std::move(member);
    } else if (tokens_.SeesOperator("[")) {
      KV_ASSIGN_OR_RETURN(left, ParseSubscript(std::move(left)));
    } else if (tokens_.SeesOperator("(")) {
      Node call = Make(ExpressionType::kCall);
      KV_RETURN_IF_ERROR(Adopt(*call, std::move(left)));
      KV_RETURN_IF_ERROR(ParseArguments(*call));
      left = std::move(call);
    } else {
      return left;
    }
  }
}

ExpressionResult ExpressionParser::ParseSubscript(Node left) {
  Node node = Make(ExpressionType::kIndex);
  KV_RETURN_IF_ERROR(Adopt(*node, std::move(left)));
  tokens_.Next();
  while (true) {
    Node part;
    if (!tokens_.SeesOperator(":") && !tokens_.SeesOperator("]")) {
      KV_ASSIGN_OR_RETURN(part, Parse());
    }
    KV_RETURN_IF_ERROR(Adopt(*node, std::move(part)));
    if (node->children.size() == 4 || !tokens_.SkipOperator(":")) break;
    node->type = ExpressionType::kSlice;
  }
  KV_RETURN_IF_ERROR(tokens_.ExpectOperator("]"));
  if (node->type == ExpressionType::kSlice) {
    node->children.resize(4);
  } else if (node->children[1] == nullptr) {
    return TemplateError(node->line, "an index is missing between [ and ]");
  }
  return node;
}

ExpressionResult ExpressionParser::ParseFilters(Node left) {
  while (true) {
    if (tokens_.SkipOperator("|")) {
      Node filter = Make(ExpressionType::kFilter);
      KV_ASSIGN_OR_RETURN(filter->text, tokens_.ExpectName());
      KV_RETURN_IF_ERROR(Adopt(*filter, std::move(left)));
      if (tokens_.SeesOperator("(")) KV_RETURN_IF_ERROR(ParseArguments(*filter));
      left = std::move(filter);
    } else if (tokens_.SkipName("is")) {
      KV_ASSIGN_OR_RETURN(left, ParseTest(std::move(left)));
    } else if (tokens_.SeesOperator("(") || tokens_.SeesOperator(".") ||
               tokens_.SeesOperator("[")) {
      KV_ASSIGN_OR_RETURN(left, ParsePostfix(std::move(left)));
    } else {
      return left;
    }
  }
}

ExpressionResult ExpressionParser::ParseTest(Node left) {
  const bool negated = tokens_.SkipName("not");
  Node test = Make(ExpressionType::kTest);
  KV_ASSIGN_OR_RETURN(test->text, tokens_.ExpectName());
  KV_RETURN_IF_ERROR(Adopt(*test, std::move(left)));
  const Token& next = tokens_.Peek();
  const bool word = next.type == TokenType::kName && next.text != "else" && next.text != "or" &&
                    next.text != "and" && next.text != "is" && next.text != "if" &&
                    next.text != "not" && next.text != "in";
  if (tokens_.SeesOperator("(")) {
    KV_RETURN_IF_ERROR(ParseArguments(*test));
  } else if (word || next.type == TokenType::kString || next.type == TokenType::kInteger ||
             next.type == TokenType::kFloat || tokens_.SeesOperator("[") ||
             tokens_.SeesOperator("{")) {
    KV_ASSIGN_OR_RETURN(Node primary, ParsePrimary());
    KV_ASSIGN_OR_RETURN(Node argument, ParsePostfix(std::move(primary)));
    KV_RETURN_IF_ERROR(Adopt(*test, std::move(argument)));
  }
  if (!negated) return test;
  Node inverse = Make(ExpressionType::kUnary, "not");
  KV_RETURN_IF_ERROR(Adopt(*inverse, std::move(test)));
  return inverse;
}

Status ExpressionParser::ParseArguments(Expression& call) {
  tokens_.Next();
  bool first = true;
  while (!tokens_.SkipOperator(")")) {
    if (!first) {
      KV_RETURN_IF_ERROR(tokens_.ExpectOperator(","));
      if (tokens_.SkipOperator(")")) break;
    }
    first = false;
    const bool by_name = tokens_.Peek().type == TokenType::kName &&
                         tokens_.PeekNext().type == TokenType::kOperator &&
                         tokens_.PeekNext().text == "=";
    if (by_name) {
      call.names.push_back(tokens_.Next().text);
      tokens_.Next();
    } else if (!call.names.empty()) {
      return TemplateError(tokens_.line(), "an argument without a name follows one with a name");
    }
    KV_ASSIGN_OR_RETURN(Node argument, Parse());
    KV_RETURN_IF_ERROR(Adopt(call, std::move(argument)));
  }
  return Status();
}

}  // namespace cairn::engine::jinja
