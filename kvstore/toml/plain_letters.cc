// Counts the letters of UTF-8 as they come; the n-th new one is U+E000 + n from then on.
#include "kvstore/toml/plain_letters.h"

#include <algorithm>

namespace cairn::kv {
namespace {

constexpr size_t kStandInSize = 3;  // Of U+E000 to U+F8FF in UTF-8.

bool IsAscii(char c) { return static_cast<uint8_t>(c) < 0x80; }

// The bytes of the letter that `text` begins with; 0 when it is not UTF-8 (RFC 3629, section 4).
size_t LetterSize(std::string_view text) {
  const auto at = [&](size_t i) {
    return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0};
  };
  const uint8_t first = at(0);
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && at(1) < 0xA0) || (first == 0xF0 && at(1) < 0x90);
  const bool beyond = (first == 0xED && at(1) > 0x9F) || (first == 0xF4 && at(1) > 0x8F);
  return overlong || beyond ? 0 : size;
}

std::string StandIn(size_t place) {
  const size_t point = 0xE000 + place;
  return {static_cast<char>(0xE0 | point >> 12), static_cast<char>(0x80 | (point >> 6 & 0x3F)),
          static_cast<char>(0x80 | (point & 0x3F))};
}

size_t PlaceOf(std::string_view stand_in) {
  const auto bits = [&](size_t i, uint8_t mask) {
    return size_t{static_cast<uint8_t>(stand_in[i])} & mask;
  };
  return (bits(0, 0x0F) << 12 | bits(1, 0x3F) << 6 | bits(2, 0x3F)) - 0xE000;
}

}  // namespace

std::string PlainLetters::Exchange(std::string_view text) {
  std::string exchanged;
  exchanged.reserve(text.size());
  while (!text.empty()) {
    if (IsAscii(text.front())) {
      line_ += text.front() == '\n' ? 1 : 0;
      exchanged += text.front();
      text.remove_prefix(1);
      continue;
    }
    const size_t size = LetterSize(text);
    if (size == 0) mistake_ = "it is not UTF-8";
    if (letters_.size() == kLettersMax) mistake_ = "it has too many different letters";
    if (!mistake_.empty()) return "";
    const std::string letter(text.substr(0, size));
    const auto [place, is_new] = places_.emplace(letter, letters_.size());
    if (is_new) letters_.push_back(letter);
    exchanged += StandIn(place->second);
    text.remove_prefix(size);
  }
  return exchanged;
}

std::string PlainLetters::Original(std::string_view exchanged) const {
  std::string original;
  while (!exchanged.empty()) {
    const bool stands_in = !IsAscii(exchanged.front()) && exchanged.size() >= kStandInSize;
    const size_t place = stands_in ? PlaceOf(exchanged) : letters_.size();
    const bool is_ours = place < letters_.size();
    const size_t size = is_ours ? kStandInSize : 1;
    original += is_ours ? letters_[place] : std::string(exchanged.substr(0, 1));
    exchanged.remove_prefix(size);
  }
  return original;
}

}  // namespace cairn::kv
