// Text to tokens and back, as the model file says.
#include "engine/tokens/tokenizer.h"

namespace cairn::engine {
namespace {

using kv::Code;
using kv::Result;
using kv::Status;

Status ReadFlag(const GgufFile& file, std::string_view key, bool absent, bool& flag) {
  const Result<bool> value = file.GetBool(key);
  if (!value.ok() && value.code() != Code::kNotFound) return value.status();
  flag = value.ok() ? value.value() : absent;
  return Status();
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::Create(const GgufFile& file) {
  KV_ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::Read(file));
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer(std::move(vocabulary)));
  KV_RETURN_IF_ERROR(tokenizer->ReadFlags(file));
  const Vocabulary& tokens = tokenizer->vocabulary_;
  if (tokens.model() == VocabularyModel::kBytePair) {
    KV_ASSIGN_OR_RETURN(tokenizer->encoder_, MakeBytePairEncoder(file, tokens));
  } else {
    tokenizer->encoder_ = MakeSentencePieceEncoder(tokens, tokenizer->adds_space_prefix_);
  }
  for (TokenId id = 0; id < tokens.size(); ++id) {
    if (tokens.Kind(id) == TokenKind::kControl) {
      tokenizer->control_.Insert(tokens.Spelling(id), id);
    }
    if (tokens.Kind(id) == TokenKind::kUserDefined) {
      tokenizer->user_defined_.Insert(tokens.Spelling(id), id);
    }
  }
  return tokenizer;
}

Status Tokenizer::ReadFlags(const GgufFile& file) {
  const bool sentence_piece = vocabulary_.model() == VocabularyModel::kSentencePiece;
  const auto pre = file.GetString("tokenizer.ggml.pre");
  const bool llama3 = pre.ok() && (pre.value() == "llama-bpe" || pre.value() == "llama3" ||
                                   pre.value() == "llama-v3" || pre.value() == "falcon3");
  KV_RETURN_IF_ERROR(
      ReadFlag(file, "tokenizer.ggml.add_bos_token", sentence_piece || llama3, add_bos_));
  bool space_prefix = false;
  KV_RETURN_IF_ERROR(
      ReadFlag(file, "tokenizer.ggml.add_space_prefix", sentence_piece, space_prefix));
  add_bos_ = add_bos_ && vocabulary_.special().bos.has_value();
  adds_space_prefix_ = space_prefix && sentence_piece;
  return Status();
}

void Tokenizer::Encode(std::string_view text, std::vector<TokenId>& tokens) const {
  if (user_defined_.empty()) {
    encoder_->Encode(text, tokens);
    return;
  }
  size_t start = 0;
  for (size_t at = 0; at < text.size();) {
    const auto match = user_defined_.LongestAt(text, at);
    if (!match) {
      ++at;
      continue;
    }
    encoder_->Encode(text.substr(start, at - start), tokens);
    tokens.push_back(match->id);
    at += match->size;
    start = at;
  }
  encoder_->Encode(text.substr(start), tokens);
}

std::vector<TokenId> Tokenizer::Encode(std::string_view text) const {
  std::vector<TokenId> tokens;
  Encode(text, tokens);
  return tokens;
}

std::string Tokenizer::Decode(std::span<const TokenId> tokens) const {
  std::string bytes;
  for (const TokenId id : tokens) {
    if (id >= vocabulary_.size() || vocabulary_.Kind(id) == TokenKind::kControl) continue;
    bytes += vocabulary_.Bytes(id);
  }
  if (adds_space_prefix_ && bytes.starts_with(' ')) bytes.erase(0, 1);
  return bytes;
}

}  // namespace cairn::engine
