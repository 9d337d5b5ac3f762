// A model's tokens: their texts, their kinds, and those with a part to play.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/api/token.h"
#include "engine/gguf/gguf.h"
#include "kvstore/base/result.h"

namespace cairn::engine {

// The numbers are those of tokenizer.ggml.token_type.
enum class TokenKind : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // Never made from text: only from a template, or generated.
  kUserDefined = 4,  // Found in text whole, before any other rule.
  kUnused = 5,
  kByte = 6,  // "<0x0A>": one byte of text that has no other token.
};

enum class VocabularyModel {
  kBytePair,       // tokenizer.ggml.model "gpt2": texts in the byte alphabet, ordered merges.
  kSentencePiece,  // "llama": texts with U+2581 for spaces, scores, byte tokens.
};

// Ids that are absent in the file are nullopt; those present are below size().
struct SpecialTokens {
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  std::optional<TokenId> eot;  // End of turn, where it is not eos.
  std::optional<TokenId> unknown;
};

class Vocabulary {
 public:
  // Copies all it needs. kInvalid when the metadata is incomplete or contradicts itself.
  static kv::Result<Vocabulary> Read(const GgufFile& file);
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  VocabularyModel model() const { return model_; }
  uint32_t size() const { return static_cast<uint32_t>(spellings_.size()); }

  // The token as the file spells it, e.g. "Ġthe", "▁the", "<0x0A>", "<|im_end|>".
  const std::string& Spelling(TokenId id) const { return spellings_[id]; }
  // The bytes of text that it stands for; for control tokens their spelling.
  const std::string& Bytes(TokenId id) const { return bytes_[id]; }
  TokenKind Kind(TokenId id) const { return kinds_[id]; }
  float Score(TokenId id) const { return scores_.empty() ? 0.0f : scores_[id]; }

  // Tokens that text may become, by spelling: normal, user-defined and unused ones.
  std::optional<TokenId> FindText(std::string_view spelling) const;
  // The token of one byte, where there is one.
  std::optional<TokenId> ByteToken(uint8_t byte) const { return byte_tokens_[byte]; }

  const SpecialTokens& special() const { return special_; }
  // Generation stops at these: eos, eot, and control tokens that mean the end of a turn by name.
  bool EndsGeneration(TokenId id) const { return ends_[id]; }

 private:
  Vocabulary() = default;
  kv::Status ReadKinds(const GgufFile& file);
  kv::Status ReadSpecial(const GgufFile& file);
  void IndexTokens();
  void IndexByteTokens();

  VocabularyModel model_ = VocabularyModel::kBytePair;
  std::vector<std::string> spellings_;
  std::vector<std::string> bytes_;
  std::vector<TokenKind> kinds_;
  std::vector<float> scores_;
  std::vector<bool> ends_;
  std::vector<std::optional<TokenId>> byte_tokens_;
  // Views into spellings_, whose elements never move once read.
  std::unordered_map<std::string_view, TokenId> by_text_;
  SpecialTokens special_;
};

}  // namespace cairn::engine
