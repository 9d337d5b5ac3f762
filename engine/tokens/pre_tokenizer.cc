// Cuts text into the words inside which byte-level BPE merges.
#include "engine/tokens/pre_tokenizer.h"

#include <array>
#include <string>

#include "engine/tokens/unicode.h"

namespace cairn::engine {
namespace {

struct Name {
  std::string_view name;
  PreTokenizer kind;
};

constexpr Name kNames[] = {
    {"default", PreTokenizer::kDefault},  {"gpt-2", PreTokenizer::kGpt2},
    {"phi-2", PreTokenizer::kGpt2},       {"mpt", PreTokenizer::kGpt2},
    {"olmo", PreTokenizer::kGpt2},        {"smollm", PreTokenizer::kSmollm},
    {"starcoder", PreTokenizer::kSmollm}, {"refact", PreTokenizer::kSmollm},
    {"command-r", PreTokenizer::kSmollm}, {"codeshell", PreTokenizer::kSmollm},
    {"exaone", PreTokenizer::kSmollm},    {"llama3", PreTokenizer::kLlama3},
    {"llama-v3", PreTokenizer::kLlama3},  {"llama-bpe", PreTokenizer::kLlama3},
    {"falcon3", PreTokenizer::kLlama3},   {"qwen2", PreTokenizer::kQwen2},
    {"stablelm2", PreTokenizer::kQwen2},  {"deepseek-r1-qwen", PreTokenizer::kQwen2},
};

// A text and its characters' classes, asked by byte offset. Past the end there is kEnd.
class Characters {
 public:
  enum Kind : uint8_t { kLetter, kNumber, kSpace, kOther, kEnd };

  explicit Characters(std::string_view text) : text_(text) {}

  size_t size() const { return text_.size(); }
  Kind KindAt(size_t at) const {
    if (at >= text_.size()) return kEnd;
    return static_cast<Kind>(ClassOf(CharacterAt(text_, at).value));
  }
  size_t Next(size_t at) const { return at + CharacterAt(text_, at).size; }
  bool Is(size_t at, char c) const { return at < text_.size() && text_[at] == c; }
  bool IsNewline(size_t at) const { return Is(at, '\n') || Is(at, '\r'); }

  // The end of the run of `kind` that begins at `at`.
  size_t RunEnd(size_t at, Kind kind) const {
    while (KindAt(at) == kind) at = Next(at);
    return at;
  }

  // The size of an English contraction at `at` ('s 't 're 've 'm 'll 'd), else 0.
  size_t ContractionSize(size_t at, bool any_case) const {
    if (!Is(at, '\'') || at + 1 >= size()) return 0;
    const char first = Lower(text_[at + 1], any_case);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    if (at + 2 >= size()) return 0;
    const char second = Lower(text_[at + 2], any_case);
    const bool two = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                     (first == 'l' && second == 'l');
    return two ? 3 : 0;
  }

 private:
  static char Lower(char c, bool any_case) {
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  }

  const std::string_view text_;
};

// \s+(?!\S)|\s+ : a run of spaces, less its last one where something follows it.
size_t SpacesEnd(const Characters& text, size_t at) {
  size_t last = at;
  size_t end = at;
  while (text.KindAt(end) == Characters::kSpace) {
    last = end;
    end = text.Next(end);
  }
  const bool whole = end == text.size() || last == at;
  return whole ? end : last;
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t Gpt2End(const Characters& text, size_t at) {
  if (const size_t size = text.ContractionSize(at, false); size != 0) return at + size;
  const size_t start = text.Is(at, ' ') ? at + 1 : at;
  const Characters::Kind kind = text.KindAt(start);
  if (kind != Characters::kSpace && kind != Characters::kEnd) return text.RunEnd(start, kind);
  return SpacesEnd(text, at);
}

// (?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
//  ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+      (Qwen2: \p{N} instead of \p{N}{1,3})
size_t Llama3End(const Characters& text, size_t at, int digits_max) {
  if (const size_t size = text.ContractionSize(at, true); size != 0) return at + size;
  const Characters::Kind kind = text.KindAt(at);
  if (kind == Characters::kLetter) return text.RunEnd(at, kind);
  const size_t next = text.Next(at);
  if (kind == Characters::kNumber) {
    size_t end = next;
    for (int i = 1; i < digits_max && text.KindAt(end) == Characters::kNumber; ++i) {
      end = text.Next(end);
    }
    return end;
  }
  if (!text.IsNewline(at) && text.KindAt(next) == Characters::kLetter) {
    return text.RunEnd(next, Characters::kLetter);
  }
  const size_t start = text.Is(at, ' ') ? next : at;
  if (text.KindAt(start) == Characters::kOther) {
    size_t end = text.RunEnd(start, Characters::kOther);
    while (text.IsNewline(end)) ++end;
    return end;
  }
  size_t newline_end = 0;
  for (size_t i = at; text.KindAt(i) == Characters::kSpace; i = text.Next(i)) {
    if (text.IsNewline(i)) newline_end = i + 1;
  }
  return newline_end != 0 ? newline_end : SpacesEnd(text, at);
}

// \p{N}, with what is between as words of their own.
size_t DigitEnd(const Characters& text, size_t at) {
  if (text.KindAt(at) == Characters::kNumber) return text.Next(at);
  while (at < text.size() && text.KindAt(at) != Characters::kNumber) at = text.Next(at);
  return at;
}

// \p{N}+, with what is between.
size_t NumberEnd(const Characters& text, size_t at) {
  if (text.KindAt(at) == Characters::kNumber) return text.RunEnd(at, Characters::kNumber);
  return DigitEnd(text, at);
}

// Calls `sink` with each piece of `text`, whose ends `end_of` finds.
template <typename EndOf, typename Sink>
void ForEachPiece(std::string_view text, EndOf end_of, Sink sink) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = end_of(at);
    sink(text.substr(at, end - at));
    at = end;
  }
}

bool IsAsciiDigit(char c) { return c >= '0' && c <= '9'; }

// [0-9][0-9][0-9], with what is between.
size_t ThreeDigitsEnd(std::string_view text, size_t at) {
  const auto three_at = [text](size_t i) {
    return i + 3 <= text.size() && IsAsciiDigit(text[i]) && IsAsciiDigit(text[i + 1]) &&
           IsAsciiDigit(text[i + 2]);
  };
  if (three_at(at)) return at + 3;
  while (at < text.size() && !three_at(at)) ++at;
  return at;
}

// [\p{P}\$\+<=>\^~\|]+, with what is between.
size_t PunctuationEnd(std::string_view text, size_t at) {
  const auto is_punctuation = [text](size_t i) {
    const char32_t c = CharacterAt(text, i).value;
    const bool symbol = c < 128 && std::string_view("$+<=>^~|").find(static_cast<char>(c)) !=
                                       std::string_view::npos;
    return symbol || IsPunctuation(c);
  };
  const bool kind = is_punctuation(at);
  while (at < text.size() && is_punctuation(at) == kind) at += CharacterAt(text, at).size;
  return at;
}

void SplitGpt2(std::string_view text, std::vector<std::string_view>& words) {
  const Characters characters(text);
  ForEachPiece(
      text, [&](size_t at) { return Gpt2End(characters, at); },
      [&](std::string_view word) { words.push_back(word); });
}

void SplitSmollm(std::string_view text, std::vector<std::string_view>& words) {
  const Characters characters(text);
  ForEachPiece(
      text, [&](size_t at) { return DigitEnd(characters, at); },
      [&](std::string_view piece) { SplitGpt2(piece, words); });
}

void SplitLlama3(std::string_view text, int digits_max, std::vector<std::string_view>& words) {
  const Characters characters(text);
  ForEachPiece(
      text, [&](size_t at) { return Llama3End(characters, at, digits_max); },
      [&](std::string_view word) { words.push_back(word); });
}

// Four expressions, each applied to the pieces of the one before.
void SplitDefault(std::string_view text, std::vector<std::string_view>& words) {
  const auto by_threes = [&words](std::string_view piece) {
    ForEachPiece(
        piece, [&](size_t at) { return ThreeDigitsEnd(piece, at); },
        [&](std::string_view word) { words.push_back(word); });
  };
  const auto by_numbers = [&by_threes](std::string_view piece) {
    const Characters characters(piece);
    ForEachPiece(
        piece, [&](size_t at) { return NumberEnd(characters, at); }, by_threes);
  };
  const auto by_words = [&by_numbers](std::string_view piece) {
    const Characters characters(piece);
    ForEachPiece(
        piece, [&](size_t at) { return Gpt2End(characters, at); }, by_numbers);
  };
  ForEachPiece(
      text, [&](size_t at) { return PunctuationEnd(text, at); }, by_words);
}

}  // namespace

kv::Result<PreTokenizer> PreTokenizerByName(std::string_view name) {
  for (const Name& known : kNames) {
    if (known.name == name) return known.kind;
  }
  return kv::Status(kv::Code::kInvalid,
                    "the pre-tokenizer '" + std::string(name) + "' is not supported");
}

void SplitWords(PreTokenizer kind, std::string_view text, std::vector<std::string_view>& words) {
  switch (kind) {
    case PreTokenizer::kGpt2:
      return SplitGpt2(text, words);
    case PreTokenizer::kSmollm:
      return SplitSmollm(text, words);
    case PreTokenizer::kDefault:
      return SplitDefault(text, words);
    case PreTokenizer::kLlama3:
      return SplitLlama3(text, 3, words);
    case PreTokenizer::kQwen2:
      return SplitLlama3(text, 1, words);
  }
}

}  // namespace cairn::engine
