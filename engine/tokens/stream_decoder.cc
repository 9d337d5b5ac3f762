// Turns tokens into text as they are generated, never showing a part of a character.
#include "engine/tokens/stream_decoder.h"

#include "engine/tokens/unicode.h"

namespace cairn::engine {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// How many bytes at `at` one U+FFFD stands for: the longest beginning of a character, else one.
size_t DamagedSize(std::string_view bytes, size_t at) {
  size_t size = 1;
  while (size < 3 && at + size < bytes.size() && IsUtf8Beginning(bytes.substr(at, size + 1))) {
    ++size;
  }
  return size;
}

}  // namespace

std::string StreamDecoder::Push(TokenId id) {
  const Vocabulary& vocabulary = tokenizer_.vocabulary();
  if (id >= vocabulary.size() || vocabulary.Kind(id) == TokenKind::kControl) return {};
  std::string_view piece = vocabulary.Bytes(id);
  if (drop_space_ && !piece.empty()) {
    if (piece.front() == ' ') piece.remove_prefix(1);
    drop_space_ = false;
  }
  const std::string bytes = pending_ + std::string(piece);
  std::string text;
  size_t at = 0;
  while (at < bytes.size()) {
    const Utf8Character character = CharacterAt(bytes, at);
    if (character.valid) {
      text.append(bytes, at, character.size);
      at += character.size;
    } else if (IsUtf8Beginning(std::string_view(bytes).substr(at))) {
      break;  // More bytes may complete it.
    } else {
      text += kReplacement;
      at += DamagedSize(bytes, at);
    }
  }
  pending_ = bytes.substr(at);
  return text;
}

std::string StreamDecoder::Finish() {
  const bool unfinished = !pending_.empty();
  pending_.clear();
  return unfinished ? std::string(kReplacement) : std::string();
}

}  // namespace cairn::engine
