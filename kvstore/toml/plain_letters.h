// Text in which each letter beyond ASCII stands for another one, and the way back.
//
// toml++ 3.3 runs into undefined behaviour when it asks whether certain letters (U+00A1 to U+0499
// and others) are white space. It does not for U+E000 to U+F8FF, which have no meaning of their
// own: so the parser sees these, and readers of its results the letters that they stand for.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::kv {

class PlainLetters {
 public:
  // How many different letters there may be.
  static constexpr size_t kLettersMax = 0xF900 - 0xE000;

  // `text` with its letters exchanged. After an error `mistake` says what is wrong in `line`.
  std::string Exchange(std::string_view text);
  // What a part of the parser's result was in the original.
  std::string Original(std::string_view exchanged) const;

  bool any() const { return !letters_.empty(); }
  std::string_view mistake() const { return mistake_; }  // Empty: none.
  uint64_t line() const { return line_; }

 private:
  std::map<std::string, size_t, std::less<>> places_;
  std::vector<std::string> letters_;
  std::string_view mistake_;
  uint64_t line_ = 1;
};

}  // namespace cairn::kv
