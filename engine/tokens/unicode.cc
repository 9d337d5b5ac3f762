// Reads UTF-8 character by character, and sorts characters into the classes tokenizers use.
#include "engine/tokens/unicode.h"

#include <utf8proc.h>

#include <array>

namespace cairn::engine {
namespace {

bool IsSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

CharacterClass Classify(char32_t c) {
  if (IsSpace(c)) return CharacterClass::kSpace;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return CharacterClass::kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharacterClass::kNumber;
    default:
      return CharacterClass::kOther;
  }
}

constexpr std::array<CharacterClass, 128> MakeAsciiClasses() {
  std::array<CharacterClass, 128> classes = {};
  for (size_t c = 0; c < 128; ++c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool space = (c >= 0x09 && c <= 0x0D) || c == ' ';
    classes[c] = letter                   ? CharacterClass::kLetter
                 : (c >= '0' && c <= '9') ? CharacterClass::kNumber
                 : space                  ? CharacterClass::kSpace
                                          : CharacterClass::kOther;
  }
  return classes;
}
constexpr std::array<CharacterClass, 128> kAsciiClasses = MakeAsciiClasses();

// The first continuation byte is restricted after some lead bytes: no overlong forms, no
// surrogates, nothing above U+10FFFF.
bool IsSecondByte(uint8_t first, uint8_t second) {
  if (first == 0xE0) return second >= 0xA0 && second <= 0xBF;
  if (first == 0xED) return second >= 0x80 && second <= 0x9F;
  if (first == 0xF0) return second >= 0x90 && second <= 0xBF;
  if (first == 0xF4) return second >= 0x80 && second <= 0x8F;
  return second >= 0x80 && second <= 0xBF;
}

}  // namespace

uint32_t Utf8SizeOf(uint8_t first) {
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;
  if (first < 0xE0) return 2;
  if (first < 0xF0) return 3;
  return first < 0xF5 ? 4 : 0;
}

bool IsUtf8Beginning(std::string_view bytes) {
  if (bytes.empty()) return true;
  const uint8_t first = static_cast<uint8_t>(bytes[0]);
  const uint32_t size = Utf8SizeOf(first);
  if (size == 0 || bytes.size() >= size) return false;
  if (bytes.size() >= 2 && !IsSecondByte(first, static_cast<uint8_t>(bytes[1]))) return false;
  for (size_t i = 2; i < bytes.size(); ++i) {
    if ((static_cast<uint8_t>(bytes[i]) & 0xC0) != 0x80) return false;
  }
  return true;
}

Utf8Character CharacterAt(std::string_view text, size_t at) {
  const uint8_t first = static_cast<uint8_t>(text[at]);
  if (first < 0x80) return {first, 1, true};
  const uint32_t size = Utf8SizeOf(first);
  if (size == 0 || text.size() - at < size) return {};
  if (!IsSecondByte(first, static_cast<uint8_t>(text[at + 1]))) return {};
  char32_t value = first & (0x7Fu >> size);
  for (uint32_t i = 1; i < size; ++i) {
    const uint8_t next = static_cast<uint8_t>(text[at + i]);
    if ((next & 0xC0) != 0x80) return {};
    value = (value << 6) | (next & 0x3Fu);
  }
  return {value, size, true};
}

CharacterClass ClassOf(char32_t character) {
  if (character < 128) return kAsciiClasses[character];
  return Classify(character);
}

bool IsPunctuation(char32_t character) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(character))) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return true;
    default:
      return false;
  }
}

}  // namespace cairn::engine
