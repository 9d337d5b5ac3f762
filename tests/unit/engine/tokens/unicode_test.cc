// UTF-8: well-formed characters are read whole, everything else byte by byte.
#include "engine/tokens/unicode.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::engine {
namespace {

std::string Utf8Of(char32_t c) {
  const auto byte = [](uint32_t value) { return static_cast<char>(value); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 | (c >> 6)), byte(0x80 | (c & 63))};
  if (c < 0x10000) {
    return {byte(0xE0 | (c >> 12)), byte(0x80 | ((c >> 6) & 63)), byte(0x80 | (c & 63))};
  }
  return {byte(0xF0 | (c >> 18)), byte(0x80 | ((c >> 12) & 63)), byte(0x80 | ((c >> 6) & 63)),
          byte(0x80 | (c & 63))};
}

TEST(Unicode, EveryCharacterIsReadAndEveryBeginningOfItRecognised) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    const std::string text = Utf8Of(c);
    const Utf8Character read = CharacterAt(text, 0);
    const bool surrogate = c >= 0xD800 && c <= 0xDFFF;
    ASSERT_EQ(read.valid, !surrogate) << static_cast<uint32_t>(c);
    if (surrogate) continue;
    ASSERT_EQ(read.value, c);
    ASSERT_EQ(read.size, text.size());
    for (size_t size = 1; size < text.size(); ++size) {
      ASSERT_TRUE(IsUtf8Beginning(text.substr(0, size)));
      ASSERT_FALSE(CharacterAt(text.substr(0, size), 0).valid);
    }
  }
}

TEST(Unicode, OverlongAndForeignBytesAreNotCharacters) {
  for (const char* text : {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF",
                           "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    EXPECT_FALSE(CharacterAt(text, 0).valid);
    EXPECT_EQ(CharacterAt(text, 0).size, 1u);
    EXPECT_FALSE(IsUtf8Beginning(std::string_view(text).substr(0, 2)));
  }
}

TEST(Unicode, ClassesFollowTheGeneralCategories) {
  EXPECT_EQ(ClassOf('q'), CharacterClass::kLetter);
  EXPECT_EQ(ClassOf(0x4E16), CharacterClass::kLetter);
  EXPECT_EQ(ClassOf('7'), CharacterClass::kNumber);
  EXPECT_EQ(ClassOf(0x00BD), CharacterClass::kNumber);  // One half.
  EXPECT_EQ(ClassOf(0x3000), CharacterClass::kSpace);   // Ideographic space.
  EXPECT_EQ(ClassOf(0x0085), CharacterClass::kSpace);   // Next line.
  EXPECT_EQ(ClassOf(0x200B), CharacterClass::kOther);   // Zero width space is none.
  EXPECT_EQ(ClassOf(0x0301), CharacterClass::kOther);   // A combining mark.
  EXPECT_EQ(ClassOf(0x1F600), CharacterClass::kOther);  // Emoji.
  EXPECT_TRUE(IsPunctuation(0x3002));
  EXPECT_FALSE(IsPunctuation('+'));
}

}  // namespace
}  // namespace cairn::engine
