// How vocabularies of byte-level BPE spell bytes: each of the 256 as one printable character.
//
// Printable bytes of Latin-1 stand for themselves; the others, in order, are U+0100 and up (so a
// space is U+0120). GPT-2 began it, and GGUF files of all its successors keep it.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace cairn::engine {

constexpr bool SpellsItself(uint32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) ||
         (byte >= 0xAE && byte <= 0xFF);
}

// The character of each byte; all are below U+0144.
constexpr std::array<uint16_t, 256> MakeByteAlphabet() {
  std::array<uint16_t, 256> alphabet = {};
  uint16_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    alphabet[byte] = SpellsItself(byte) ? static_cast<uint16_t>(byte) : next++;
  }
  return alphabet;
}
inline constexpr std::array<uint16_t, 256> kByteAlphabet = MakeByteAlphabet();
static_assert(kByteAlphabet[' '] == 0x120 && kByteAlphabet['\n'] == 0x10A);

// The spelling of one byte in UTF-8: one or two bytes.
inline std::string SpellByte(uint8_t byte) {
  const uint16_t character = kByteAlphabet[byte];
  if (character < 0x80) return std::string(1, static_cast<char>(character));
  return {static_cast<char>(0xC0 | (character >> 6)), static_cast<char>(0x80 | (character & 0x3F))};
}

}  // namespace cairn::engine
