// Words by hand against words by the published regular expressions, run by PCRE2.
#include "engine/tokens/pre_tokenizer.h"

#include <gtest/gtest.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <string>

#include "kvstore/base/random.h"
#include "tests/support/status_matchers.h"

namespace cairn::engine {
namespace {

using ::cairn::testing::HasCode;

constexpr char kGpt2[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr char kLlama3[] =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kQwen2[] =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Kind {
  PreTokenizer kind;
  std::vector<const char*> expressions;  // Each is applied to the pieces of the one before.
};

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kinds = {
      {PreTokenizer::kGpt2, {kGpt2}},
      {PreTokenizer::kSmollm, {R"(\p{N})", kGpt2}},
      {PreTokenizer::kDefault, {R"([\p{P}\$\+<=>\^\~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
      {PreTokenizer::kLlama3, {kLlama3}},
      {PreTokenizer::kQwen2, {kQwen2}},
  };
  return kinds;
}

// Matches, and the gaps between them, in order.
std::vector<std::string> SplitByExpression(const char* expression,
                                           const std::vector<std::string>& pieces) {
  int error = 0;
  PCRE2_SIZE error_at = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression), PCRE2_ZERO_TERMINATED,
                                   PCRE2_UTF | PCRE2_UCP, &error, &error_at, nullptr);
  EXPECT_NE(code, nullptr);
  pcre2_match_data* match = pcre2_match_data_create_from_pattern(code, nullptr);
  std::vector<std::string> result;
  for (const std::string& piece : pieces) {
    size_t at = 0;
    while (at < piece.size()) {
      const int found = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(piece.data()), piece.size(),
                                    at, 0, match, nullptr);
      if (found < 0) break;
      const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match);
      if (bounds[0] > at) result.push_back(piece.substr(at, bounds[0] - at));
      result.push_back(piece.substr(bounds[0], bounds[1] - bounds[0]));
      at = bounds[1];
    }
    if (at < piece.size()) result.push_back(piece.substr(at));
  }
  pcre2_match_data_free(match);
  pcre2_code_free(code);
  return result;
}

std::vector<std::string> Expected(const Kind& kind, const std::string& text) {
  std::vector<std::string> pieces = {text};
  for (const char* expression : kind.expressions) pieces = SplitByExpression(expression, pieces);
  return pieces;
}

std::vector<std::string> Actual(const Kind& kind, const std::string& text) {
  std::vector<std::string_view> words;
  SplitWords(kind.kind, text, words);
  return {words.begin(), words.end()};
}

TEST(PreTokenizer, RandomTextSplitsLikeTheExpressions) {
  // What the rules distinguish, often enough to meet every neighbour.
  const std::vector<std::string> alphabet = {" ",
                                             " ",
                                             "  ",
                                             "\n",
                                             "\r",
                                             "\t",
                                             "\xC2\xA0",
                                             "\xE3\x80\x80",
                                             "a",
                                             "B",
                                             "s",
                                             "t",
                                             "re",
                                             "'",
                                             "'",
                                             "LL",
                                             "d",
                                             "1",
                                             "23",
                                             "4567",
                                             "\xC2\xBD",
                                             "\xD9\xA3",
                                             ".",
                                             "!?",
                                             "$",
                                             "+",
                                             "~",
                                             "|",
                                             "\xC3\xA9",
                                             "e\xCC\x81",
                                             "\xE4\xBD\xA0",
                                             "\xE3\x80\x82",
                                             "\xF0\x9F\x98\x80",
                                             "_",
                                             "-",
                                             "<|x|>"};
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    kv::Random random(seed);
    std::string text;
    const uint64_t count = random.Below(30);
    for (uint64_t i = 0; i < count; ++i) text += alphabet[random.Below(alphabet.size())];
    for (const Kind& kind : Kinds()) {
      ASSERT_EQ(Actual(kind, text),
                text.empty() ? std::vector<std::string>() : Expected(kind, text))
          << "seed " << seed << " kind " << static_cast<int>(kind.kind) << " text '" << text << "'";
    }
  }
}

TEST(PreTokenizer, DigitsOfSmollmStandAlone) {
  EXPECT_EQ(Actual(Kinds()[1], "in 2024 it's"),
            (std::vector<std::string>{"in", " ", "2", "0", "2", "4", " it", "'s"}));
}

TEST(PreTokenizer, InvalidUtf8IsKeptByteForByte) {
  kv::Random random(5);
  std::string text(5000, '\0');
  random.Fill({reinterpret_cast<uint8_t*>(text.data()), text.size()});
  for (const Kind& kind : Kinds()) {
    std::string joined;
    for (const std::string& word : Actual(kind, text)) joined += word;
    EXPECT_EQ(joined, text);
  }
}

TEST(PreTokenizer, UnknownNamesAreTold) {
  EXPECT_EQ(PreTokenizerByName("smollm").value(), PreTokenizer::kSmollm);
  const auto unknown = PreTokenizerByName("dragon");
  EXPECT_THAT(unknown, HasCode(kv::Code::kInvalid));
  EXPECT_NE(unknown.status().message().find("dragon"), std::string::npos);
}

}  // namespace
}  // namespace cairn::engine
