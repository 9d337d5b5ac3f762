// A model's tokens: their texts, their kinds, and those with a part to play.
#include "engine/tokens/vocabulary.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/gguf/byte_alphabet.h"
#include "engine/tokens/unicode.h"

namespace cairn::engine {
namespace {

using kv::Code;
using kv::Result;
using kv::Status;

constexpr uint64_t kTokensMax = 1u << 24;
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

// Control tokens that end a turn in some model family; files often name only one of theirs.
constexpr std::string_view kTurnEnds[] = {
    "<|im_end|>",      "<|endoftext|>", "<|eot_id|>", "<|eom_id|>",    "<|end|>",
    "<|end_of_text|>", "<end_of_turn>", "</s>",       "<|endofturn|>", "<EOT>"};

// Undoes the byte alphabet; characters outside it stay as they are.
std::string UnspellBytes(std::string_view spelling) {
  static const std::array<int16_t, 0x144> byte_of = [] {
    std::array<int16_t, 0x144> table;
    table.fill(-1);
    for (size_t byte = 0; byte < 256; ++byte) {
      table[kByteAlphabet[byte]] = static_cast<int16_t>(byte);
    }
    return table;
  }();
  std::string bytes;
  for (size_t at = 0; at < spelling.size();) {
    const Utf8Character character = CharacterAt(spelling, at);
    if (character.valid && character.value < byte_of.size() && byte_of[character.value] >= 0) {
      bytes += static_cast<char>(byte_of[character.value]);
    } else {
      bytes += spelling.substr(at, character.size);
    }
    at += character.size;
  }
  return bytes;
}

std::string UnmarkSpaces(std::string_view spelling) {
  std::string bytes;
  for (size_t at = 0; at < spelling.size();) {
    if (spelling.substr(at, kSpaceMark.size()) == kSpaceMark) {
      bytes += ' ';
      at += kSpaceMark.size();
    } else {
      bytes += spelling[at++];
    }
  }
  return bytes;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// The byte that "<0xAB>" names.
std::optional<uint8_t> NamedByte(std::string_view spelling) {
  if (spelling.size() != 6 || spelling.substr(0, 3) != "<0x" || spelling[5] != '>') {
    return std::nullopt;
  }
  const int high = HexDigit(spelling[3]);
  const int low = HexDigit(spelling[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<uint8_t>(high * 16 + low);
}

Result<VocabularyModel> ReadModel(const GgufFile& file) {
  KV_ASSIGN_OR_RETURN(const std::string_view name, file.GetString("tokenizer.ggml.model"));
  if (name == "gpt2") return VocabularyModel::kBytePair;
  if (name == "llama") return VocabularyModel::kSentencePiece;
  return Status(Code::kInvalid, "the tokenizer model '" + std::string(name) +
                                    "' is not supported ('gpt2' and 'llama' are)");
}

}  // namespace

Result<Vocabulary> Vocabulary::Read(const GgufFile& file) {
  Vocabulary vocabulary;
  KV_ASSIGN_OR_RETURN(vocabulary.model_, ReadModel(file));
  KV_ASSIGN_OR_RETURN(const auto tokens, file.GetStrings("tokenizer.ggml.tokens"));
  if (tokens.empty() || tokens.size() > kTokensMax) {
    return Status(Code::kInvalid, "the vocabulary has " + std::to_string(tokens.size()) +
                                      " tokens: empty, or more than a token id holds");
  }
  vocabulary.spellings_.assign(tokens.begin(), tokens.end());
  KV_RETURN_IF_ERROR(vocabulary.ReadKinds(file));
  KV_RETURN_IF_ERROR(vocabulary.ReadSpecial(file));
  vocabulary.IndexTokens();
  vocabulary.IndexByteTokens();
  return vocabulary;
}

Status Vocabulary::ReadKinds(const GgufFile& file) {
  kinds_.assign(size(), TokenKind::kNormal);
  if (const auto types = file.GetInts("tokenizer.ggml.token_type"); types.ok()) {
    if (types.value().size() != size()) {
      return Status(Code::kInvalid, "tokenizer.ggml.token_type does not fit the vocabulary");
    }
    for (uint32_t id = 0; id < size(); ++id) {
      const int64_t type = types.value()[id];
      if (type >= 1 && type <= 6) kinds_[id] = static_cast<TokenKind>(type);
    }
  } else if (types.code() != Code::kNotFound) {
    return types.status();
  }
  if (model_ == VocabularyModel::kBytePair) return Status();
  KV_ASSIGN_OR_RETURN(scores_, file.GetFloats("tokenizer.ggml.scores"));
  const bool numbers =
      std::none_of(scores_.begin(), scores_.end(), [](float score) { return std::isnan(score); });
  if (scores_.size() != size() || !numbers) {
    return Status(Code::kInvalid, "tokenizer.ggml.scores does not fit the vocabulary");
  }
  return Status();
}

Status Vocabulary::ReadSpecial(const GgufFile& file) {
  struct Role {
    const char* key;
    std::optional<TokenId>* target;
  };
  const Role roles[] = {{"tokenizer.ggml.bos_token_id", &special_.bos},
                        {"tokenizer.ggml.eos_token_id", &special_.eos},
                        {"tokenizer.ggml.eot_token_id", &special_.eot},
                        {"tokenizer.ggml.unknown_token_id", &special_.unknown}};
  for (const Role& role : roles) {
    const Result<uint64_t> id = file.GetUint(role.key);
    if (id.code() == Code::kNotFound) continue;
    if (!id.ok()) return id.status();
    if (id.value() == UINT32_MAX) continue;  // Some files spell "none" as -1.
    if (id.value() >= size()) {
      return Status(Code::kInvalid, std::string(role.key) + " is outside the vocabulary");
    }
    *role.target = static_cast<TokenId>(id.value());
    // Old files give no kinds; text must never become one of these all the same.
    if (role.target != &special_.unknown) kinds_[id.value()] = TokenKind::kControl;
  }
  return Status();
}

void Vocabulary::IndexTokens() {
  ends_.assign(size(), false);
  bytes_.reserve(size());
  by_text_.reserve(size());
  for (TokenId id = 0; id < size(); ++id) {
    const std::string& spelling = spellings_[id];
    const TokenKind kind = kinds_[id];
    const bool plain = kind == TokenKind::kNormal || kind == TokenKind::kUnused;
    if (plain || kind == TokenKind::kUserDefined) by_text_[spelling] = id;
    if (kind == TokenKind::kByte && NamedByte(spelling)) {
      bytes_.emplace_back(1, static_cast<char>(*NamedByte(spelling)));
    } else if (!plain) {
      bytes_.push_back(spelling);
    } else if (model_ == VocabularyModel::kBytePair) {
      bytes_.push_back(UnspellBytes(spelling));
    } else {
      bytes_.push_back(UnmarkSpaces(spelling));
    }
    if (kind == TokenKind::kControl) {
      ends_[id] =
          std::find(std::begin(kTurnEnds), std::end(kTurnEnds), spelling) != std::end(kTurnEnds);
    }
  }
  if (special_.eos) ends_[*special_.eos] = true;
  if (special_.eot) ends_[*special_.eot] = true;
}

void Vocabulary::IndexByteTokens() {
  byte_tokens_.assign(256, std::nullopt);
  for (TokenId id = 0; id < size(); ++id) {
    if (kinds_[id] != TokenKind::kByte) continue;
    if (const auto byte = NamedByte(spellings_[id])) byte_tokens_[*byte] = id;
  }
  if (model_ != VocabularyModel::kBytePair) return;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const auto id = FindText(SpellByte(static_cast<uint8_t>(byte)));
    if (id) byte_tokens_[byte] = id;
  }
}

std::optional<TokenId> Vocabulary::FindText(std::string_view spelling) const {
  const auto found = by_text_.find(spelling);
  if (found == by_text_.end()) return std::nullopt;
  return found->second;
}

}  // namespace cairn::engine
