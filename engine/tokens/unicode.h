// Reads UTF-8 character by character, and sorts characters into the classes tokenizers use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cairn::engine {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

struct Utf8Character {
  char32_t value = kReplacementCharacter;
  uint32_t size = 1;  // In bytes. A byte that begins no well-formed character is one on its own.
  bool valid = false;
};

// `at` is below text.size().
Utf8Character CharacterAt(std::string_view text, size_t at);

// How many bytes the character that `first` begins has: 1 to 4, or 0 if it begins none.
uint32_t Utf8SizeOf(uint8_t first);

// True while `bytes` may still become one well-formed character by adding bytes to it.
bool IsUtf8Beginning(std::string_view bytes);

// Unicode's general categories L, N, the property White_Space, and all the rest.
enum class CharacterClass : uint8_t { kLetter, kNumber, kSpace, kOther };
CharacterClass ClassOf(char32_t character);

bool IsPunctuation(char32_t character);  // General category P.

}  // namespace cairn::engine
