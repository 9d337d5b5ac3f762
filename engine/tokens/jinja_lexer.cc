// Cuts a template into literal text and the words of its tags.
#include "engine/tokens/jinja_lexer.h"

#include <algorithm>

namespace cairn::engine::jinja {
namespace {

using kv::Code;
using kv::Result;
using kv::Status;

constexpr std::string_view kSpaces = " \t\n\r\f\v";

bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string NormalizeNewlines(std::string_view source) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
    } else if (i + 1 == source.size() || source[i + 1] != '\n') {
      text += '\n';
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

void AppendUtf8(uint32_t c, std::string& target) {
  const auto put = [&target](uint32_t byte) { target += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 63));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 63));
    put(0x80 | (c & 63));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 63));
    put(0x80 | ((c >> 6) & 63));
    put(0x80 | (c & 63));
  }
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  Result<std::vector<Token>> Run() {
    while (at_ < source_.size()) KV_RETURN_IF_ERROR(LexDataAndTag());
    Push(TokenType::kEnd, "");
    return std::move(tokens_);
  }

 private:
  void Push(TokenType type, std::string text) { tokens_.push_back({type, std::move(text), line_}); }

  bool Sees(std::string_view text) const {
    return std::string_view(source_).substr(at_, text.size()) == text;
  }

  void Advance(size_t size) {
    line_ += static_cast<uint32_t>(
        std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                   source_.begin() + static_cast<std::ptrdiff_t>(at_ + size), '\n'));
    at_ += size;
  }

  // Text up to the next tag, then the tag.
  Status LexDataAndTag() {
    size_t tag = at_;
    while (true) {
      tag = source_.find('{', tag);
      if (tag == std::string::npos || tag + 1 == source_.size()) {
        tag = source_.size();
        break;
      }
      const char next = source_[tag + 1];
      if (next == '{' || next == '%' || next == '#') break;
      ++tag;
    }
    std::string data = source_.substr(at_, tag - at_);
    if (tag < source_.size()) {
      const char modifier = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
      const bool print = source_[tag + 1] == '{';
      if (modifier == '-') {
        data.erase(data.find_last_not_of(kSpaces) + 1);
      } else if (modifier != '+' && !print) {
        StripLineStart(data);
      }
    }
    if (!data.empty()) Push(TokenType::kData, data);
    Advance(tag - at_);
    return at_ == source_.size() ? Status() : LexTag();
  }

  // Drops blanks between the start of the line and a tag, if there is nothing else.
  void StripLineStart(std::string& data) const {
    const size_t newline = data.rfind('\n');
    if (newline == std::string::npos && !line_starting_) return;
    const size_t start = newline == std::string::npos ? 0 : newline + 1;
    if (data.find_first_not_of(kSpaces, start) == std::string::npos) data.erase(start);
  }

  Status LexTag() {
    const char kind = source_[at_ + 1];
    const uint32_t line = line_;
    Advance(2);
    if (kind == '#') {
      const size_t end = source_.find("#}", at_);
      if (end == std::string::npos) return TemplateError(line, "a comment has no end");
      const char modifier = end > at_ ? source_[end - 1] : ' ';
      Advance(end - at_);
      Close(modifier, true);
      return Status();
    }
    if (at_ < source_.size() && (source_[at_] == '-' || (kind == '%' && source_[at_] == '+'))) {
      Advance(1);
    }
    if (kind == '%' && IsRaw()) return LexRaw(line);
    Push(kind == '%' ? TokenType::kStatementBegin : TokenType::kPrintBegin, "");
    return LexWords(kind == '%');
  }

  // After the end mark of two characters at at_, which `modifier` stands before.
  void Close(char modifier, bool statement) {
    Advance(2);
    const size_t before = at_;
    if (modifier == '-') {
      const size_t next = std::min(source_.find_first_not_of(kSpaces, at_), source_.size());
      Advance(next - at_);
    } else if (statement && modifier != '+' && Sees("\n")) {
      Advance(1);
    }
    line_starting_ = at_ > before && source_[at_ - 1] == '\n';
  }

  bool IsRaw() const {
    const size_t name = source_.find_first_not_of(kSpaces, at_);
    if (name == std::string::npos || source_.compare(name, 3, "raw") != 0) return false;
    const size_t end = source_.find_first_not_of(kSpaces, name + 3);
    return end != std::string::npos &&
           (source_.compare(end, 2, "%}") == 0 || source_.compare(end, 3, "-%}") == 0);
  }

  Status LexRaw(uint32_t line) {
    const size_t open = source_.find("%}", at_);
    Advance(open - at_);
    Close(source_[open - 1], true);
    for (size_t tag = at_; (tag = source_.find("{%", tag)) != std::string::npos; tag += 2) {
      size_t name = tag + 2;
      const bool strip = name < source_.size() && source_[name] == '-';
      if (strip) ++name;
      name = source_.find_first_not_of(kSpaces, name);
      if (name == std::string::npos || source_.compare(name, 6, "endraw") != 0) continue;
      const size_t end = source_.find("%}", name);
      if (end == std::string::npos) break;
      std::string data = source_.substr(at_, tag - at_);
      if (strip) data.erase(data.find_last_not_of(kSpaces) + 1);
      if (!strip) StripLineStart(data);
      if (!data.empty()) Push(TokenType::kData, data);
      Advance(end - at_);
      Close(source_[end - 1], true);
      return Status();
    }
    return TemplateError(line, "raw has no endraw");
  }

  Status LexWords(bool statement) {
    const std::string_view mark = statement ? "%}" : "}}";
    std::string open;  // Brackets that are open, innermost last.
    while (true) {
      Advance(std::min(source_.find_first_not_of(kSpaces, at_), source_.size()) - at_);
      if (at_ == source_.size()) return TemplateError(line_, "a tag has no end");
      const char c = source_[at_];
      const bool modified =
          (c == '-' || (statement && c == '+')) && source_.compare(at_ + 1, 2, mark) == 0;
      if (open.empty() && (modified || Sees(mark))) {
        Push(statement ? TokenType::kStatementEnd : TokenType::kPrintEnd, "");
        if (modified) Advance(1);
        Close(modified ? c : ' ', statement);
        return Status();
      }
      if (IsNameStart(c)) {
        LexName();
      } else if (IsDigit(c)) {
        LexNumber();
      } else if (c == '"' || c == '\'') {
        KV_RETURN_IF_ERROR(LexString(c));
      } else {
        KV_RETURN_IF_ERROR(LexOperator(open));
      }
    }
  }

  void LexName() {
    size_t end = at_;
    while (end < source_.size() && (IsNameStart(source_[end]) || IsDigit(source_[end]))) ++end;
    Push(TokenType::kName, source_.substr(at_, end - at_));
    Advance(end - at_);
  }

  void LexNumber() {
    size_t end = at_;
    bool real = false;
    while (end < source_.size() && (IsDigit(source_[end]) || source_[end] == '_')) ++end;
    if (end + 1 < source_.size() && source_[end] == '.' && IsDigit(source_[end + 1])) {
      real = true;
      ++end;
      while (end < source_.size() && IsDigit(source_[end])) ++end;
    }
    size_t exponent = end + 1;
    if (exponent < source_.size() && (source_[exponent] == '-' || source_[exponent] == '+')) {
      ++exponent;
    }
    const bool marked = end < source_.size() && (source_[end] == 'e' || source_[end] == 'E');
    if (marked && exponent < source_.size() && IsDigit(source_[exponent])) {
      real = true;
      end = exponent;
      while (end < source_.size() && IsDigit(source_[end])) ++end;
    }
    std::string digits = source_.substr(at_, end - at_);
    std::erase(digits, '_');
    Push(real ? TokenType::kFloat : TokenType::kInteger, std::move(digits));
    Advance(end - at_);
  }

  Status LexString(char quote) {
    const uint32_t line = line_;
    std::string text;
    size_t i = at_ + 1;
    while (i < source_.size() && source_[i] != quote) {
      if (source_[i] == '\\' && i + 1 < source_.size()) {
        i = AppendEscape(i + 1, text);
      } else {
        text += source_[i++];
      }
    }
    if (i >= source_.size()) return TemplateError(line, "a string has no end");
    Push(TokenType::kString, std::move(text));
    Advance(i + 1 - at_);
    return Status();
  }

  // The escape whose letter is at `at`; returns where the text goes on. Unknown ones stay as they
  // are, as in Python.
  size_t AppendEscape(size_t at, std::string& text) const {
    static constexpr std::string_view kLetters = "ntrbfva\\'\"";
    static constexpr std::string_view kMeanings = "\n\t\r\b\f\v\a\\'\"";
    const char letter = source_[at];
    if (letter == '\n') return at + 1;
    if (const size_t known = kLetters.find(letter); known != std::string_view::npos) {
      text += kMeanings[known];
      return at + 1;
    }
    const size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    uint32_t value = 0;
    size_t i = at + 1;
    for (; i < source_.size() && i < at + 1 + digits; ++i) {
      const std::string_view hex = "0123456789abcdef";
      const char lower = source_[i] >= 'A' && source_[i] <= 'F'
                             ? static_cast<char>(source_[i] + ('a' - 'A'))
                             : source_[i];
      const size_t digit = hex.find(lower);
      if (digit == std::string_view::npos) break;
      value = value * 16 + static_cast<uint32_t>(digit);
    }
    const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
    if (digits == 0 || i != at + 1 + digits || value > 0x10FFFF || surrogate) {
      text += '\\';
      text += letter;
      return at + 1;
    }
    AppendUtf8(value, text);
    return i;
  }

  Status LexOperator(std::string& open) {
    static constexpr std::string_view kLong[] = {"//", "**", "==", "!=", "<=", ">="};
    static constexpr std::string_view kShort = "+-*/%~<>=.:,|()[]{}";
    const char c = source_[at_];
    size_t size = 1;
    for (const std::string_view candidate : kLong) {
      if (Sees(candidate)) size = 2;
    }
    if (size == 1 && kShort.find(c) == std::string_view::npos) {
      return TemplateError(line_, Quoted({&c, 1}) + " has no meaning here");
    }
    if (c == '(') open += ')';
    if (c == '[') open += ']';
    if (c == '{') open += '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) {
        return TemplateError(line_, Quoted({&c, 1}) + " closes nothing");
      }
      open.pop_back();
    }
    Push(TokenType::kOperator, source_.substr(at_, size));
    Advance(size);
    return Status();
  }

  const std::string source_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> Lex(std::string_view source) {
  return Lexer(NormalizeNewlines(source)).Run();
}

std::string Quoted(std::string_view text) {
  return std::string("'").append(text.substr(0, 40)).append("'");
}

Status TemplateError(uint32_t line, const std::string& what) {
  return Status(Code::kInvalid, "chat template, line " + std::to_string(line) + ": " + what);
}

}  // namespace cairn::engine::jinja
