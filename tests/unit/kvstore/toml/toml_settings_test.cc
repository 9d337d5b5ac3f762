// Documents as settings, and documents that are none.
#include "kvstore/toml/toml_settings.h"

#include <gmock/gmock.h>

#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using Kind = TomlSetting::Kind;
using ::testing::HasSubstr;
using testing::HasCode;
using testing::IsOk;

TEST(TomlSettings, AreFlatWithLines) {
  const auto read = ReadToml("[a]\nb = 1\nc = \"x\"\nd = [1.5, true]\n[e]\nf = 2020-01-01\n", "f");
  ASSERT_THAT(read, IsOk());
  struct Expected {
    const char* key;
    uint64_t line;
    Kind kind;
    const char* value;
  };
  const std::vector<Expected> expected = {
      {"a", 1, Kind::kTable, ""},     {"a.b", 2, Kind::kInteger, "1"}, {"a.c", 3, Kind::kText, "x"},
      {"a.d", 4, Kind::kList, ""},    {"a.d.0", 4, Kind::kReal, "1.5"},
      {"a.d.1", 4, Kind::kFlag, "true"}, {"e", 5, Kind::kTable, ""},
      {"e.f", 6, Kind::kOther, ""}};
  ASSERT_EQ(read.value().size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const TomlSetting& setting = read.value()[i];
    EXPECT_EQ(setting.key, expected[i].key);
    EXPECT_EQ(setting.line, expected[i].line) << setting.key;
    EXPECT_EQ(setting.kind, expected[i].kind) << setting.key;
    EXPECT_EQ(setting.value, expected[i].value) << setting.key;
  }
}

TEST(TomlSettings, WhatIsBrokenIsAnErrorWithItsLine) {
  for (const char* text : {"[", "[?]", "[ =]", "[[{]]", "[.]", "[a.?]", "a = ", "a = {?}", "a = [",
                           "a = \"", "\xff\xfe", "a = 1\na = 2", "a = 0x", "=", "a.? = 1"}) {
    const auto read = ReadToml(text, "f");
    EXPECT_THAT(read, HasCode(Code::kInvalid)) << text;
    EXPECT_THAT(read.status().message(), HasSubstr("f:")) << text;
  }
}

TEST(TomlSettings, LettersBeyondAsciiAreFineInQuotesAndComments) {
  const auto read = ReadToml(
      "\xEF\xBB\xBF# \u00fc\na = \"\\\"\u00fc\"\nb = '\u00fc' # \u3042\n\"\u3042\" = \"\"\"\n"
      "\U0001F600 \u00e4\ue001\"\"\"", "f");
  ASSERT_THAT(read, IsOk());
  ASSERT_EQ(read.value().size(), 3u);
  EXPECT_EQ(read.value()[0].value, "\"\u00fc");
  EXPECT_EQ(read.value()[1].value, "\u00fc");
  EXPECT_EQ(read.value()[2].key, "\u3042");
  EXPECT_EQ(read.value()[2].value, "\U0001F600 \u00e4\ue001");
}

// Each of them once met what toml++ holds to be impossible.
TEST(TomlSettings, LettersBeyondAsciiElsewhereAreErrors) {
  for (const char* text :
       {"\u00fc = 1", "a = 1\n[\u00fc]", "a = \"\"\"\\ \u00fc\"\"\"", "a = 2x\\\"\u00fc\"",
        "a = 2[\"\u00fc\"", "a = \u3042", "a = \"\\u00fc \u00fc\"", "a = '\xC3'",
        "a = '\xE0\x80\x80'", "a = '\xED\xA0\x80'"}) {
    EXPECT_THAT(ReadToml(text, "f"), HasCode(Code::kInvalid)) << text;
  }
}

TEST(TomlSettings, EscapesMeanWhatTheyName) {
  const auto read = ReadToml("a = \"\\u00fc\\uE000\"", "f");
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read.value()[0].value, "\u00fc\ue000");
}

TEST(TomlSettings, TooManyDifferentLettersAreAnError) {
  std::string text = "a = '";
  for (uint32_t point = 0x4E00; point < 0x4E00 + 6401; ++point) {
    text += static_cast<char>(0xE0 | point >> 12);
    text += static_cast<char>(0x80 | (point >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (point & 0x3F));
  }
  EXPECT_THAT(ReadToml(text + "'", "f"), HasCode(Code::kInvalid));
  text.resize(text.size() - 3);
  EXPECT_THAT(ReadToml(text + "'", "f"), IsOk());
}

TEST(TomlSettings, NestedTooDeepIsAnError) {
  std::string deep = "a";
  for (int i = 0; i < 500'000; ++i) deep += ".a";
  EXPECT_THAT(ReadToml(deep + " = 1", "f"), HasCode(Code::kInvalid));
  EXPECT_THAT(ReadToml("a = " + std::string(500'000, '['), "f"), HasCode(Code::kInvalid));
  EXPECT_THAT(ReadToml(deep.substr(0, 8191) + " = 1", "f"), IsOk());
}

}  // namespace
}  // namespace cairn::kv
